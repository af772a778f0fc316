#include "fedep/round/phase.h"

#include <algorithm>

#include "fedep/algorithm/cooldown.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"

namespace fedep {
namespace {

// What the next phase is to carry must be what its optimizer keeps.
void check_carried(const std::vector<Phase>& before, const OptimizerSettings& optimizer) {
  const OptimizerSettings& last = before.back().server_optimizer;
  if (std::ranges::equal(find_optimizer(last.name).slots(last),
                         find_optimizer(optimizer.name).slots(optimizer))) {
    return;
  }
  throw InputError(fmt::format(
      "phase.{}.optimizer_state can be carry only with the optimizer of the phase before, "
      "but that is {} and this one {}; make it fresh",
      before.size(), last.name, optimizer.name));
}

}  // namespace

double optimizer_scale(const Phase& phase, std::int64_t round, double damping) {
  const double scale = phase.damping.outside ? damping : 1.0;
  return phase.cooldown ? scale * cooldown(*phase.cooldown, round - phase.first_round) : scale;
}

std::vector<Phase> plan_phases(const Recipe& recipe,
                               const std::function<Family(std::string_view)>& family_of) {
  std::vector<Phase> phases;
  std::int64_t first_round = 0;
  for (const PhaseSettings& settings : recipe.phases) {
    const Algorithm& algorithm = find_algorithm(settings.algorithm);
    const InferenceSettings inference = settings.inference.value_or(InferenceSettings{});
    if (!algorithm.point_estimate && inference.name.empty()) {
      throw InputError(fmt::format("phase.{}.inference.name is missing: {} needs one",
                                   phases.size(), algorithm.name));
    }
    const ServerSettings& server = recipe.server;
    const OptimizerSettings optimizer = settings.optimizer.value_or(server.optimizer);
    check_optimizer(optimizer);
    const OptimizerSettings factor =
        settings.optimizer.value_or(server.factor_optimizer.value_or(server.optimizer));
    check_optimizer(factor);
    const bool carries = settings.optimizer_state == OptimizerHandover::carry;
    if (carries && !phases.empty()) check_carried(phases, optimizer);
    Phase phase{
        .algorithm = &algorithm,
        .first_round = first_round,
        .rounds = settings.rounds,
        .family = algorithm.point_estimate ? Family::isotropic : family_of(inference.name),
        .cavity = settings.cavity.value_or(algorithm.cavity),
        .share = settings.share,
        .weight = settings.weight.value_or(algorithm.weight),
        .damping = server.damping,
        .clip = settings.clip,
        .guard = settings.guard,
        .delta = {.rho = inference.rho},
        .factors = settings.factors,
        .alpha = inference.alpha,
        .carries_optimizer = carries,
        .server_optimizer = optimizer,
        .factor_optimizer = factor,
        .cooldown = settings.cooldown,
        .clients_per_round = std::size_t(server.clients_per_round),
        .grid_bits = server.grid_bits,
        .inference = inference,
    };
    // Averages weighted by examples are averages already; rules that divide by K would do so twice.
    const bool divides_by_k = phase.damping.rule == DampingRule::one_over_k ||
                              phase.damping.rule == DampingRule::decaying;
    if (phase.weight == WeightRule::examples && divides_by_k) {
      phase.damping.rule = DampingRule::none;
    }
    first_round = phase.end_round();
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace fedep
