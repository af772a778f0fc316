// How a table's rows become features, as a run keeps it (features.json): rows that come later, on a
// machine that never saw the training rows, are prepared as those were.
//
//   replace_file(run / "features.json", to_json(*data.info().table));
//   const TableFeatures features = parse_table_features(text, "features.json");
//   const EncodedTable rows = encode_table(read_delimited("new.csv", kCsv), features);
//   distance(row) > features.far;                     // unlike the rows it was trained on
//
// It holds what clients reported and pooled, column by column, and no row of anybody.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

struct TableFeatures {
  std::string data = {};  // name of the data set
  TableSpec spec = {};
  TableScale scale = {};
  std::vector<std::string> output_names = {};  // classes, if spec.target is label
  double far = 0;                              // distance that 95 % of the held-out rows stay below
  std::vector<std::string> suspected = {};     // values that did not fit the others', a line each

  bool operator==(const TableFeatures&) const = default;
};

std::string to_json(const TableFeatures& features);
// Throws InputError, naming the source, for a text that to_json did not write.
TableFeatures parse_table_features(std::string_view text, const std::string& source);

// Whether both make the same features of a row, up to what rounding does to means and deviations.
bool prepare_alike(const TableFeatures& a, const TableFeatures& b);

// What a model is told about these data.
DatasetInfo info_of(const TableFeatures& features);

// Rows of a table that training did not see.
struct EncodedTable {
  Batch batch = {};
  std::vector<std::size_t> rows = {};  // of the table, from 0: those that the batch holds,
  std::vector<std::size_t> ends =
      {};  // and where their examples end: a spell has one for each piece
  struct LeftOut {
    std::size_t row = 0;
    std::string why = {};  // "lactate is >4.0, which is no number"
  };
  std::vector<LeftOut> left_out = {};
};
// Every good row, in order. A row is left out, as in training, for a number that is none, an exposure that
// is not positive, or a number that a float cannot hold when it is scaled, and also for a spell that does not
// end after it begins. A missing value stands at the column's mean, and so does a category that no client
// had. Throws InputError if a column is not there.
EncodedTable encode_table(const DelimitedTable& table, const TableFeatures& features);

// What training rows do not tell apart: number columns with one value or none, which are features
// that are always 0, and category columns with one value or none, which have no feature.
struct ConstantColumns {
  std::vector<std::string> names = {};
  std::vector<std::size_t> features = {};  // of the number columns, ascending
};
ConstantColumns constant_columns(const TableFeatures& features);

// Mean square of a row's scaled features: 1 on average over the training rows.
double distance(std::span<const float> features);
// The smallest value that at least this part of all values does not exceed; NaN without values.
double quantile(std::vector<double> values, double part);

}  // namespace fedep
