#include "fedep/page/report/factor_gap_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace fedep {
namespace {

constexpr double kFar = 0.01;  // thousands of rounds of rounding leave 1e-4 at most

const PhaseSettings* phase_of_round(const Recipe& recipe, std::int64_t round) {
  for (const PhaseSettings& phase : recipe.phases) {
    if (round < phase.rounds) return &phase;
    round -= phase.rounds;
  }
  return nullptr;
}

// What moves q otherwise than factors, the likeliest first.
std::string cause_of(const Recipe& recipe, const PhaseSettings& phase) {
  const OptimizerSettings server = phase.optimizer.value_or(recipe.server.optimizer);
  const OptimizerSettings factor =
      phase.optimizer.value_or(recipe.server.factor_optimizer.value_or(server));
  if (server.name != "sgd") {
    return fmt::format("Steps of {} do not add up, and those of sgd do", server.name);
  }
  if (!(factor == server)) return "Factors have other optimizer settings than the server";
  if (phase.optimizer_state == OptimizerHandover::carry) {
    return "The server has momentum of the phase before (optimizer_state = \"carry\"), and factors "
           "have none";
  }
  if (phase.guard.mode == GuardMode::floor) {
    return "With guard = \"floor\" q has precisions that no factor has";
  }
  if (server.momentum > 0 && phase.factor_clock == FactorClock::visit) {
    return fmt::format(
        "The server's momentum of {:g} acts in every round and a client's only on its visits; "
        "factor_clock = \"round\" keeps them together",
        server.momentum);
  }
  return "Numbers are too large for float's digits";
}

}  // namespace

std::optional<RoundRecord> last_factor_gap(const std::vector<RoundRecord>& rounds) {
  const auto found = std::find_if(rounds.rbegin(), rounds.rend(), [](const RoundRecord& round) {
    return !std::isnan(round.factor_gap_eta);
  });
  if (found == rounds.rend()) return std::nullopt;
  return *found;
}

std::string factor_gap_text(const Recipe& recipe, const RoundRecord& round) {
  const double eta = round.factor_gap_eta, lambda = round.factor_gap_lambda;
  if (eta <= kFar && lambda <= kFar) return {};
  const PhaseSettings* const phase = phase_of_round(recipe, round.round);
  if (phase == nullptr) return {};
  return fmt::format(
      "q is not the product of the prior and clients' factors: after round {} |q - q_0 Π q_k| / "
      "|q| is {:.2g} for η and {:.2g} for Λ, so it says what no data say. {}",
      round.round + 1, eta, lambda, cause_of(recipe, *phase));
}

}  // namespace fedep
