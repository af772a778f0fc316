#include "fedep/config/resolve.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/check_recipe.h"

namespace fedep {
namespace {

// A schedule to the phase's end is one of so many rounds: who plays fewer of them plays the same.
void write_out(std::optional<RoundSchedule>& schedule, int rounds) {
  if (schedule && schedule->rounds == 0) schedule->rounds = std::max(1, rounds - schedule->after);
}

}  // namespace

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
    if (!phase.schedule) continue;
    write_out(phase.schedule->client_rate, phase.rounds);
    write_out(phase.schedule->server_rate, phase.rounds);
    write_out(phase.schedule->clip, phase.rounds);
    write_out(phase.schedule->alpha, phase.rounds);
  }
  return recipe;
}

}  // namespace fedep
