#include "fedep/config/resolve.h"

#include "fedep/algorithm/algorithm.h"

namespace fedep {

Recipe resolved(Recipe recipe) {
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
