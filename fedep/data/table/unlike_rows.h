// Which columns make a row unlike the rows that a table was trained on.
//
//   const EncodedTable rows = encode_table(table, features);
//   for (const Unlike& x : unlike_rows(table, rows, features)[0]) fmt::print("{}: {}\n", x.column, word_of(x.kind));
//
// Judged by what features.json holds, which is no row of anybody: means, deviations, categories, and how far
// held-out rows lie. Nothing found does not mean that a row is like those of training.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedep/data/table/table_features.h"

namespace fedep {

enum class UnlikeKind {
  far,       // a number more than kFarDeviations from the column's mean,
  category,  // a category that no client had, which stands at the mean,
  constant,  // another number in a column that had one value, which predictions do not read,
  limits,    // a number that data.scale = "robust" takes as missing
  together,  // one of the columns that, together, are further away than 95 % of held-out rows
};

struct Unlike {
  std::string column = {};
  UnlikeKind kind = UnlikeKind::far;

  bool operator==(const Unlike&) const = default;
};

// Seldom passed by accident: by one in two million of Gaussian values, by one in 150 of lognormal ones whose logs
// deviate by 0.7.
inline constexpr double kFarDeviations = 5;

// "far from the mean", "new category", …
std::string_view word_of(UnlikeKind kind);

// By row that is encoded; empty: nothing. Of a row that is far together: the columns furthest away, as many as
// must be left out for the rest to be near, and no column twice.
std::vector<std::vector<Unlike>> unlike_rows(const DelimitedTable& table, const EncodedTable& rows,
                                             const TableFeatures& features);

}  // namespace fedep
