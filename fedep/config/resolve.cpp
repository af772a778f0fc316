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

Recipe without_open_choices(Recipe recipe) {
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

}  // namespace

FactorStart factor_start(const Recipe& recipe, std::size_t phase) {
  const PhaseSettings& settings = recipe.phases[phase];
  if (settings.factors) return *settings.factors;
  const bool infers = !find_algorithm(settings.algorithm).point_estimate;
  return phase == 0 && infers && recipe.server.prior ? FactorStart::flat : FactorStart::carry_mean;
}

Recipe with_factor_starts_of(const Recipe& there, Recipe given) {
  const std::size_t both = std::min(there.phases.size(), given.phases.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (!given.phases[i].factors) given.phases[i].factors = factor_start(there, i);
  }
  return given;
}

Recipe resolved(Recipe recipe) {
  check_recipe(recipe);
  return without_open_choices(std::move(recipe));
}

Recipe filled_in(Recipe recipe) {
  Recipe filled = without_open_choices(std::move(recipe));
  for (std::size_t i = 0; i < filled.phases.size(); ++i) {
    filled.phases[i].factors = factor_start(filled, i);
  }
  return filled;
}

}  // namespace fedep
