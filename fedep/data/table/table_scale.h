// How columns of a table held by several clients come to one scale without a row leaving its
// client: each client reports sums over its training rows, and the pooled means and deviations
// follow from the sums.
//
//   const ClientReport a = report(client_a), b = report(client_b);   // all that is sent
//   const TableScale scale = pooled_scale(std::vector{a, b});
//   encode(client_a.front(), scale, features);
//
// A category is one column per value, 1 where a row has it, scaled like any other column; only the
// baseline, which is the most frequent value or a chosen one, has none. (With one, the columns would add up to the
// intercept: coefficients that only a prior tells apart, and so correlated that no diagonal
// Gaussian fits them.) A missing value is set to the column's mean, which is 0 after scaling; so is
// a category that no client reported. A column that has one value in all rows, or none, teaches
// nothing and is 0.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fedep {

// A client's record, as far as it is a feature.
struct TableRow {
  std::vector<double> numbers;          // NaN: missing
  std::vector<std::string> categories;  // empty: missing
  double exposure = 1;                  // of counts; no feature, but as given as these
  double start = 0, stop = 0;           // of a spell, which is no feature either

  bool operator==(const TableRow&) const = default;
};

struct ColumnSums {
  double count = 0;  // of values that are not missing
  double sum = 0;
  double squares = 0;  // of distances from the client's own mean, which keeps their digits

  bool operator==(const ColumnSums&) const = default;
};

struct ClientReport {
  std::vector<ColumnSums> numbers;
  std::vector<std::map<std::string, std::size_t>> categories;  // value -> rows that have it

  bool operator==(const ClientReport&) const = default;
};

struct ColumnScale {
  double mean = 0;
  double deviation = 1;  // 1 for a column that does not vary,
  bool varies = true;    // which is 0 in every row, also in rows that come later with another value
  // What lies beyond is taken as missing.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool allows(double value) const { return value >= low && value <= high; }  // false for NaN

  bool operator==(const ColumnScale&) const = default;
};

struct CategoryScale {
  std::string baseline = {};                                // what the others are compared with
  std::vector<std::pair<std::string, ColumnScale>> others;  // ascending: the union over clients

  bool operator==(const CategoryScale&) const = default;
};

struct TableScale {
  std::vector<ColumnScale> numbers;
  std::vector<CategoryScale> categories;
  std::vector<ColumnScale> missing = {};  // by missing indicator
  // By interaction, of each product of a feature of the first column and one of the second. The
  // deviation is 1: they are centred, no more.
  std::vector<std::vector<ColumnScale>> products = {};
  std::vector<double> cuts = {};            // time to event: where the next interval begins,
  std::vector<ColumnScale> intervals = {};  // and of each but the first whether a piece lies there

  bool operator==(const TableScale&) const = default;
};

// Of a client's values in a column, without those that are missing.
ColumnSums sums_of(std::span<const double> values);
// Of the rows of all of them, in this order.
ColumnSums pooled(std::span<const ColumnSums> clients);

// Throws InputError if rows differ in their numbers of columns.
ClientReport report(std::span<const TableRow> rows);

// Mean Σ sum / Σ count, variance Σ (squares + count (own mean - mean)²) / Σ count: the pooled rows',
// were they pooled. Does not depend on the order of the reports beyond rounding. Throws InputError
// if a variance is beyond a double.
TableScale pooled_scale(std::span<const ClientReport> reports);
// Of one column: what all reports say of it together.
ColumnScale scale_of(const ColumnSums& sums);
// Without a reference the most frequent value is the baseline, the first in order of equals.
CategoryScale scale_of(const std::map<std::string, std::size_t>& rows_by_value,
                       const std::string& reference = {});
// Of a 0/1 column that is 1 in so many rows.
ColumnScale share_scale(double ones, double rows);

// Appends a row's scaled columns: numbers, then each category's in order (row_encoder.h has all terms).
void encode(const TableRow& row, const TableScale& scale, std::vector<float>& out);
// Of one column.
float encoded(double value, const ColumnScale& scale);
void encode(const std::string& value, const CategoryScale& scale, std::vector<float>& out);
// Whether a client had this value.
bool is_known(const std::string& value, const CategoryScale& scale);

}  // namespace fedep
