// The features of a table's row, in the order of its terms (term.h): numbers, levels of categories,
// whether values are missing, products, the interval of time.
//
//   const RowEncoder encoder(features.spec, features.scale);
//   encoder.encode(row, batch.dense);
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

// A row whose numbers are scaled already.
struct ScaledRow {
  std::vector<float> numbers = {};                  // NaN: missing
  std::vector<const std::string*> categories = {};  // empty: missing
};

class RowEncoder {
 public:
  // Both must outlive this. Throws InputError if a term is of a column that is no feature.
  RowEncoder(const TableSpec& spec, const TableScale& scale);

  // Appends the row's features. A missing value stands at the column's mean, a product with one at its own.
  // `interval` is read where rows are pieces of spells.
  void encode(const ScaledRow& row, std::size_t interval, std::vector<float>& out) const;
  // The products of an interaction, before they are centred, in place of what is in `out`; NaN where a factor
  // is missing.
  void products(const ScaledRow& row, std::size_t interaction, std::vector<double>& out) const;
  // By missing indicator.
  bool is_missing(const ScaledRow& row, std::size_t indicator) const;

 private:
  struct Column {
    bool is_number = true;
    std::size_t index = 0;  // among numbers, or among categories
  };
  Column column(const std::string& name) const;
  void append_values(const ScaledRow& row, const Column& column, std::vector<float>& out) const;

  const TableSpec& spec_;
  const TableScale& scale_;
  std::vector<Column> missing_;                     // by indicator
  std::vector<std::pair<Column, Column>> factors_;  // by interaction
};

// The pieces of a spell (person_time.h), which the row is: an example each, whose exposure is its time at
// risk. What came of them is for the caller to say.
void append_pieces(const RowEncoder& encoder, const ScaledRow& row, double start, double stop,
                   std::span<const double> cuts, Batch& to);

// The row as a RowEncoder takes it. `row` must outlive it.
ScaledRow scaled_row(const TableRow& row, const TableScale& scale);

}  // namespace fedep
