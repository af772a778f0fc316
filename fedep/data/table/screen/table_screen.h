// A table's scale, agreed on in two exchanges: clients send summaries of their columns, the server
// answers with where values may lie and whose columns do not count, and clients send sums of what is
// left. Where nothing is suspected these are the sums of table_scale.h, to the last bit.
//
//   const ScreenedScale agreed = screened_scale(clients, {"age", "weight"}, values_of);
//   check_harmless(agreed, source);                          // data.scale = true
//   const auto scale = robust_scale(agreed);                 // data.scale = "robust"
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/table/screen/column_screen.h"
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
  std::vector<ColumnScreen> screens;  // by column of numbers
  std::vector<ColumnSums> all;        // by column: of all clients' training rows,
  std::vector<ColumnSums> accepted;   // and of what is not suspected
  std::vector<Suspicion> suspicions;  // by column, then client
};

// What a client has in a column's training rows, in their order and without what is missing, instead
// of what is in `values`.
using ValuesOf =
    std::function<void(std::size_t client, std::size_t column, std::vector<double>& values)>;

// Column after column, so that what clients send of one is all that is kept of it.
ScreenedScale screened_scale(std::span<const std::string> clients,
                             std::span<const std::string> columns, const ValuesOf& values_of);

// Where suspected values decide the scale: column, client and what helps.
struct ScaleHarm {
  bool whole = false;  // as Suspicion::whole, of the first
  std::string text;
};
std::optional<ScaleHarm> harm_of(const ScreenedScale& screened);
// Throws InputError that says so.
void check_harmless(const ScreenedScale& screened, const std::string& source);
// By column, of all values.
std::vector<ColumnScale> plain_scale(const ScreenedScale& screened);
// By column, of accepted values; others are missing, also in rows that come later (ColumnScale::low
// and high).
std::vector<ColumnScale> robust_scale(const ScreenedScale& screened);

// A line each, and how many more there are.
std::vector<std::string> told(std::span<const Suspicion> suspicions, bool robust);

}  // namespace fedep
