// What `fedep reproduce` will run: the rows of a table with their seeds, where each run goes, and
// which runs and rounds rows have in common. Rows are recipes with that `table`, in the folder of
// recipes or in any below it; files named base.toml are what recipes share, and no rows.
//
//   for (const Plan& plan : plan_of({.table = "table2", .rows = {"fed_ep_i"}})) …
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

struct PlanOptions {
  std::string table;
  std::vector<std::string> rows = {};       // none: all
  std::vector<std::uint64_t> seeds = {};    // none: each recipe's own
  std::optional<std::int64_t> rounds = {};  // only the first so many
  std::string recipes = "recipe";           // their folder
  std::string out = {};                     // folder of the runs; none: run/<table>
};

// A row, played with one seed.
struct Plan {
  std::string row = {};
  // Its own, or that of a row of another table that is played the same way.
  Recipe recipe = {};
  std::filesystem::path out = {};
  bool shortened = false;
  // Rounds after which rows of the table, shown or not, leave the path that this one is on: where
  // their first phase, which is this one's too, ends.
  std::vector<std::int64_t> keep_after = {};
};

// Throws InputError for tables and rows that there are no recipes of, and for bad recipes.
std::vector<Plan> plan_of(const PlanOptions& options);

}  // namespace fedep
