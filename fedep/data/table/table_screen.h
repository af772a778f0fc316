// A table's scale, agreed on in two exchanges: clients send summaries of their columns, the server
// answers with where values may lie and whose columns do not count, and clients send sums of what is
// left. Where nothing is suspected these are the sums of table_scale.h, to the last bit.
//
//   const ScreenedScale agreed = screened_scale(clients, {"age", "weight"}, rows_of);
//   check_harmless(agreed, source);                          // data.scale = true
//   const TableScale scale = robust_scale(agreed);           // data.scale = "robust"
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/table/column_screen.h"
#include "fedep/data/table/table_scale.h"

namespace fedep {

// A client's values in a column that do not fit the others'.
struct Suspicion {
  std::size_t column = 0;
  std::size_t client = 0;
  bool whole = false;  // the client is a stranger in this column
  std::string
      text;  // "column age of client north: 1 of 200 values lies beyond 3.1 to 130, at 1e+06"
  double share = 0;  // of the column's squares around its mean: what all its suspicions make up

  bool operator==(const Suspicion&) const = default;
};

struct ScreenedScale {
  std::vector<ColumnScreen> screens;   // by column of numbers
  std::vector<ClientReport> reports;   // of all training rows
  std::vector<ClientReport> accepted;  // of what is not suspected; empty: the same
  std::vector<Suspicion> suspicions;   // by column, then client
};

// Of a client, to read or change until the next one's are asked for.
using TrainingRows = std::function<std::span<TableRow>(std::size_t client)>;

ScreenedScale screened_scale(std::span<const std::string> clients,
                             std::span<const std::string> columns, const TrainingRows& rows_of);

// Throws InputError, naming column, client and what helps, where suspected values decide the scale.
void check_harmless(const ScreenedScale& screened, const std::string& source);
// Of accepted values; others are missing, also in rows that come later (ColumnScale::low and high).
TableScale robust_scale(const ScreenedScale& screened);

// Sets what strangers have in their columns to missing; of nothing screened, nothing.
void forget(const ScreenedScale& screened, std::size_t client, TableRow& row);

// A line each, and how many more there are.
std::vector<std::string> told(std::span<const Suspicion> suspicions, bool robust);

}  // namespace fedep
