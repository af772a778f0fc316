// What a client tells of one column of its table, for the audit (audit.h): counts, sums and extremes
// of its rows. Reports of several clients add up to the report of all their rows.
//
//   ColumnReport all = report_of(values_of_north, outcomes_of_north);
//   add(all, report_of(values_of_south, outcomes_of_south));
#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>

#include "fedep/data/table/table_scale.h"

namespace fedep {

struct ValueRange {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  bool empty() const { return !(least <= most); }
  bool varies() const { return least < most; }
  void take(double value) {
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  void take(const ValueRange& other) {
    if (other.empty()) return;
    take(other.least);
    take(other.most);
  }

  bool operator==(const ValueRange&) const = default;
};

// Of a category's value.
struct LevelReport {
  double rows = 0;
  double events = 0;

  bool operator==(const LevelReport&) const = default;
};

struct ColumnReport {
  double rows = 0;
  ColumnSums values = {};  // of those that are not missing; of a category only their number
  ValueRange range = {};
  double events = 0;               // of the rows that have a value
  ValueRange with_events = {};     // values in rows with an event,
  ValueRange without_events = {};  // and in the others
  // Whole numbers that name rows rather than measure something (see report_of).
  bool whole = true;  // all values are whole numbers
  double names = 0;   // values of clients whose values look like names of rows
  // Values that often stand for a missing one (-999), at clients where one is the least or the most.
  std::map<double, double> codes = {};             // -> rows
  ValueRange others = {};                          // of values beside these
  std::map<std::string, LevelReport> levels = {};  // of a category

  double missing() const { return rows - values.count; }
  double mean() const;       // NaN without values
  double deviation() const;  // divided by n; NaN without values

  bool operator==(const ColumnReport&) const = default;
};

// Of a client's rows: values with NaN for a missing one, and each row's events (0 where the outcome
// has none), in the file's order. Values look like names of rows if they are whole, hardly ever the
// same twice, and come close together, in ascending order, or evenly from numbers of many digits.
ColumnReport report_of(std::span<const double> values, std::span<const double> events);
// Of a category: an empty value is missing.
ColumnReport report_of(std::span<const std::string* const> values, std::span<const double> events);

// As if the rows of `more` came too.
void add(ColumnReport& to, const ColumnReport& more);

// Whether people write this number for a missing value: -9, -99, -999, 999, 9999.9, …
bool is_missing_code(double value);

}  // namespace fedep
