#include "fedep/config/resolve.h"

#include <utility>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/check_recipe.h"

namespace fedep {

Recipe resolved(Recipe recipe) {
  check_recipe(recipe);
  return filled_in(std::move(recipe));
}

Recipe filled_in(Recipe recipe) {
  auto& server = recipe.server;
  if (!server.factor_optimizer) server.factor_optimizer = server.optimizer;
  for (PhaseSettings& phase : recipe.phases) {
    const Algorithm& algorithm = find_algorithm(phase.algorithm);
    if (!phase.cavity) phase.cavity = algorithm.cavity;
    if (!phase.weight) phase.weight = algorithm.weight;
    if (!phase.inference && algorithm.needs == Needs::samples) phase.inference.emplace();
  }
  return recipe;
}

}  // namespace fedep
