#include "fedep/round/phase.h"

#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"

namespace fedep {

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
    check_optimizer(server.optimizer);
    const OptimizerSettings factor = server.factor_optimizer.value_or(server.optimizer);
    check_optimizer(factor);
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
        .carries_optimizer = settings.optimizer_state == OptimizerHandover::carry,
        .server_optimizer = server.optimizer,
        .factor_optimizer = factor,
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
