#include "fedep/round/server_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// Slots shaped for `global`. Where lambda never moved (FedAvg, FedPA) or had another shape, its
// slots are eta's, of which an isotropic lambda takes the average.
OptimizerState carried(const OptimizerState& from, const Message& global) {
  OptimizerState to{.steps = from.steps, .slots = {}};
  for (const Message& slot : from.slots) {
    const auto lambda = slot.lambda_span();
    const bool moved = std::any_of(lambda.begin(), lambda.end(), [](float x) { return x != 0; });
    if (moved && slot.family() == global.family()) {
      to.slots.push_back(slot);
    } else if (global.isotropic()) {
      to.slots.emplace_back(slot.eta(), float(sum(slot.eta()) / double(slot.size())));
    } else {
      to.slots.emplace_back(slot.eta(), slot.eta());
    }
  }
  return to;
}

}  // namespace

HostVector<float> point_estimate(const ServerState& state) {
  const Message& q = state.global;
  if (is_proper(q)) return mean(q);
  if (state.initial.size() != q.size()) {
    throw RunError(fmt::format("round {}: q must be finite, but has NaN or infinity", state.round));
  }
  if (q.full()) return stationary_point(q.lambda_packed(), q.eta(), state.initial);
  const HostVector<float> lambda = q.lambda_full();
  HostVector<float> point = state.initial;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const float center = q.eta()[i] / lambda[i];
    if (lambda[i] != 0 && std::isfinite(center)) point[i] = center;
  }
  return point;
}

RoundStartOf<HostVector<float>> begin_round(const ServerState& state, bool with_magnitudes) {
  return {.mean = point_estimate(state),
          .magnitudes = with_magnitudes ? magnitudes(state.global) : Magnitudes{}};
}

ServerState initial_server_state(const ServerSettings& settings, HostVector<float> initial) {
  ServerState state;
  const PriorSettings prior = settings.prior.value_or(PriorSettings{.mean = 0, .precision = 0});
  check_not_negative("server.prior", "precision", prior.precision);
  const float precision = float(prior.precision);
  state.prior = {constant_like(initial, float(prior.precision * prior.mean)), precision};
  state.global = from_mean(initial, 1.0f);
  state.initial = std::move(initial);
  return state;
}

ServerState begin_phase(ServerState state, const Phase& phase, std::int64_t index,
                        const Population& population) {
  const bool first = state.phase < 0;
  const bool from_average = phase.hand_over == HandOver::average && state.average.rounds > 0;
  const HostVector<float> carried_mean = first          ? state.initial
                                         : from_average ? state.average.mean
                                                        : point_estimate(state);
  const OptimizerState old = std::move(state.optimizer);
  state.phase = index;
  state.grid = {};
  state.average = {};
  state.temperatures = {};
  state.convergence = {};
  state.unvisited = {};
  state.step_scales.clear();
  state.initial = phase.algorithm->point_estimate ? HostVector<float>() : carried_mean;
  state.prior = in_family(Message(state.prior.eta(), state.prior.lambda_span()[0]), phase.family);
  if (phase.algorithm->point_estimate) {
    state.global = from_mean(carried_mean, 1.0f);
  } else if (phase.factors == FactorStart::flat) {
    state.global = state.prior;
  } else {
    check_positive("phase.inference", "alpha", phase.alpha);
    const float prior_precision = state.prior.lambda_span()[0];
    const double n = double(population.examples());
    check_positive("begin_phase", "number of examples", n);
    const float lambda = float(double(prior_precision) + phase.alpha * n);
    Message global = from_mean(carried_mean, lambda);
    const HostVector<float> factors_eta = global.eta() - state.prior.eta();
    state.unvisited.per_example =
        in_family(Message(float(1 / n) * factors_eta, float(phase.alpha)), phase.family);
    state.global = in_family(std::move(global), phase.family);
  }
  const bool carry = phase.carries_optimizer && !first;
  state.optimizer =
      carry ? carried(old, state.global) : initial_state(phase.server_optimizer, state.global);
  return state;
}

}  // namespace fedep
