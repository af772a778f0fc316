#include "app/reproduce/finished_run.h"

#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/sim/curvature.h"
#include "fedep/sim/family_choice.h"
#include "fedep/store/curvature_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/verdict.h"

namespace fedep {

bool is_begun(const std::filesystem::path& run) {
  return std::filesystem::exists(run / "recipe.toml");
}

bool is_finished(const Recipe& recipe, const std::filesystem::path& run) {
  if (!is_begun(run) || !std::filesystem::exists(run / "log.jsonl")) return false;
  const Recipe there = read_recipe(run / "recipe.toml");
  const Recipe now = with_factor_starts_of(there, recipe);
  if (!(there == with_families_of(there, now))) return false;
  if (!is_finished(recipe, read_history(run / "log.jsonl"))) return false;
  return !has_curvature(recipe) || std::filesystem::exists(curvature_path(run));
}

}  // namespace fedep
