#include "app/reproduce/reproduce_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/file_name.h"
#include "app/reproduce/paper_tables.h"
#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/store/burn_in.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

bool holds(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Not what recipes share (base.toml), nor what a run below the folder keeps as its own recipe.toml.
bool is_recipe(const fs::path& path, bool is_below) {
  if (path.extension() != ".toml" || path.filename() == "base.toml") return false;
  return !is_below || path.filename() != "recipe.toml";
}

std::vector<fs::path> recipe_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw InputError(
        fmt::format("{}: folder with recipes must exist, but does not; name it with --recipes",
                    folder.string()));
  }
  std::vector<fs::path> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options);
       at != fs::recursive_directory_iterator(); ++at) {
    if (is_recipe(at->path(), at.depth() > 0)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The recipes of a table's rows, and of rows elsewhere whose runs may be some of theirs. Table 5 is
// read off Table 2's runs, so it has none of its own.
struct TableRecipes {
  std::vector<Recipe> rows, elsewhere;
};

TableRecipes recipes_of(const PlanOptions& options) {
  std::vector<Recipe> own, shared;
  std::vector<std::string> tables;
  const PaperTable* table = find_paper_table(options.table);
  const std::string_view elsewhere = shown_elsewhere(options.table);
  const auto refuse_elsewhere = [&] {
    throw InputError(fmt::format("{} has no recipes: it is shown by {}", options.table, elsewhere));
  };
  if (!elsewhere.empty() && !fs::is_directory(options.recipes)) refuse_elsewhere();
  for (const fs::path& file : recipe_files(options.recipes)) {
    const Recipe recipe = read_recipe(file);
    if (recipe.table.empty()) continue;
    if (recipe.row.empty()) {
      throw InputError(
          fmt::format("{}: a recipe with a table needs a row too, but has none", file.string()));
    }
    check_file_name(fmt::format("{}: table", file.string()), recipe.table);
    check_file_name(fmt::format("{}: row", file.string()), recipe.row);
    if (!holds(tables, recipe.table)) tables.push_back(recipe.table);
    const bool is_own = recipe.table == options.table;
    if (!is_own && (table == nullptr ||
                    (recipe.table != table->runs_of && recipe.table != table->shares_runs_with))) {
      continue;
    }
    std::vector<Recipe>& list = is_own ? own : shared;
    for (const Recipe& other : list) {
      if (other.row != recipe.row) continue;
      throw InputError(fmt::format("{}: row {} of {} must be in one recipe, but is in another too",
                                   file.string(), shown(recipe.row), shown(recipe.table)));
    }
    list.push_back(recipe);
  }
  if (!own.empty()) return {std::move(own), std::move(shared)};
  if (!shared.empty() && table->shares_runs_with.empty()) return {std::move(shared), {}};
  if (!elsewhere.empty()) refuse_elsewhere();
  throw InputError(unknown_name("table", options.table, views(tables)));
}

// Rounds that `recipe` plays as rows of the table do whose first phase ends there: their burn-in.
std::vector<std::int64_t> shared_with(const Recipe& recipe, const std::vector<Recipe>& rows) {
  std::vector<std::int64_t> rounds;
  const std::optional<Recipe> own = burn_in_of(recipe, 0);
  for (Recipe row : rows) {
    if (!own || row.phases.size() < 2) continue;
    row.seed = recipe.seed;
    const std::int64_t end = row.phases[0].rounds;
    if (burn_in_of(row, 0) == own && std::ranges::count(rounds, end) == 0) rounds.push_back(end);
  }
  return rounds;
}

// The recipe of the same rounds, scored as often, elsewhere; else this one.
const Recipe& played_as(const Recipe& recipe, const std::vector<Recipe>& elsewhere) {
  for (const Recipe& other : elsewhere) {
    Recipe same = other;
    same.table = recipe.table;
    same.row = recipe.row;
    same.checkpoint = recipe.checkpoint;
    if (same.evaluate.every == recipe.evaluate.every) same.evaluate = recipe.evaluate;
    if (same == recipe) return other;
  }
  return recipe;
}

}  // namespace

std::vector<Plan> plan_of(const PlanOptions& options) {
  std::vector<Plan> plans;
  std::vector<std::string> rows;
  const auto [recipes, elsewhere] = recipes_of(options);
  std::vector<Recipe> all = recipes;
  all.insert(all.end(), elsewhere.begin(), elsewhere.end());
  for (const Recipe& own : recipes) {
    rows.push_back(own.row);
    if (!options.rows.empty() && !holds(options.rows, own.row)) continue;
    const Recipe& recipe = played_as(own, elsewhere);
    const std::vector<std::uint64_t> own_seed{own.seed};
    for (const std::uint64_t seed : options.seeds.empty() ? own_seed : options.seeds) {
      Plan plan{.row = own.row, .recipe = recipe, .out = {}};
      plan.recipe.seed = seed;
      std::string name = fmt::format("{}-seed{}", recipe.row, seed);
      if (options.rounds && *options.rounds < rounds_of(recipe)) {
        plan.shortened = true;
        plan.recipe = shortened(plan.recipe, *options.rounds);
        name += fmt::format("-{}rounds", *options.rounds);
      }
      const fs::path folder =
          options.out.empty() ? fs::path("run") / recipe.table : fs::path(options.out);
      plan.out = folder / name;
      plan.keep_after = shared_with(plan.recipe, all);
      plans.push_back(std::move(plan));
    }
  }
  for (const std::string& row : options.rows) {
    if (!holds(rows, row)) {
      throw InputError(unknown_name("row of " + options.table, row, views(rows)));
    }
  }
  return plans;
}

}  // namespace fedep
