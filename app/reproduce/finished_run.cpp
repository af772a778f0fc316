#include "app/reproduce/finished_run.h"

#include <vector>

#include <fmt/format.h>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/sim/curvature.h"
#include "fedep/sim/family_choice.h"
#include "fedep/store/curvature_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/run_directory.h"
#include "fedep/store/same_recipe.h"
#include "fedep/store/verdict.h"

namespace fedep {

namespace {

// Where it leaves something open, as it was decided there.
Recipe decided_as_there(const Recipe& there, const Recipe& recipe) {
  return with_families_of(there, with_factor_starts_of(there, recipe));
}

}  // namespace

bool is_begun(const std::filesystem::path& run) {
  return std::filesystem::exists(run / "recipe.toml");
}

bool is_finished(const Recipe& recipe, const std::filesystem::path& run) {
  if (!is_begun(run) || !std::filesystem::exists(run / "log.jsonl")) return false;
  const Recipe there = read_recipe(run / "recipe.toml");
  if (!(there == decided_as_there(there, recipe))) return false;
  if (!is_finished(recipe, read_history(run / "log.jsonl"))) return false;
  return !has_curvature(recipe) || std::filesystem::exists(curvature_path(run));
}

std::optional<std::string> other_settings(const Recipe& recipe, const std::filesystem::path& run) {
  if (!is_begun(run)) return std::nullopt;
  const Recipe there = read_recipe(run / "recipe.toml");
  return recipe_difference(there, decided_as_there(there, recipe));
}

std::optional<std::string> further_than_asked(const Recipe& recipe,
                                              const std::filesystem::path& run) {
  if (!is_begun(run)) return std::nullopt;
  const std::vector<std::int64_t> played = RunDirectory::of_another(run).checkpoints();
  if (played.empty()) return std::nullopt;
  if (played.back() > rounds_of(recipe)) {
    return fmt::format("has {} rounds, but must have at most {}", played.back(), rounds_of(recipe));
  }
  // A smaller bound ends a run later, 0 never: such a run goes on.
  const double there = read_recipe(run / "recipe.toml").stop.converged;
  if (recipe.stop.converged <= there) return std::nullopt;
  return fmt::format("was played with stop.converged = {}, and may have gone on where {} ends it",
                     there, recipe.stop.converged);
}

}  // namespace fedep
