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

Message with_priors(const Message& common, std::span<const CoordinatePrior> priors) {
  HostVector<float> eta = common.eta(), lambda = common.lambda_full();
  for (const CoordinatePrior& prior : priors) {
    check_not_negative("prior", "precision", prior.precision);
    check_in("prior", "coordinate", double(prior.coordinate), 0, double(eta.size()) - 1);
    eta[prior.coordinate] = float(prior.precision * prior.mean);
    lambda[prior.coordinate] = float(prior.precision);
  }
  return {std::move(eta), std::move(lambda)};
}

// A prior as it was before some phase's family: one precision for all, where all have the same, or one each.
Message smallest_family(const Message& prior) {
  HostVector<float> lambda(prior.size());
  if (prior.full()) {
    const std::span<const float> packed = prior.lambda_span();
    for (std::size_t i = 0; i < lambda.size(); ++i) lambda[i] = packed[packed_index(i, i)];
  } else {
    lambda = prior.lambda_full();
  }
  const std::span<const float> all = lambda.span();
  const bool one = std::ranges::all_of(all, [&](float x) { return x == all[0]; });
  if (one) return {prior.eta(), all[0]};
  return {prior.eta(), std::move(lambda)};
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

ServerState initial_server_state(const ServerSettings& settings, HostVector<float> initial,
                                 std::span<const CoordinatePrior> priors) {
  ServerState state;
  const PriorSettings prior = settings.prior.value_or(PriorSettings{.mean = 0, .precision = 0});
  check_not_negative("server.prior", "precision", prior.precision);
  const float precision = float(prior.precision);
  state.prior = {constant_like(initial, float(prior.precision * prior.mean)), precision};
  if (!priors.empty()) state.prior = with_priors(state.prior, priors);
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
  state.prior = smallest_family(state.prior);
  const bool one_precision = state.prior.isotropic();
  if (!one_precision && phase.family == Family::isotropic && !phase.algorithm->point_estimate) {
    fail("begin_phase", "phase.inference.family",
         "diagonal or full where coefficients have priors of their own", "isotropic");
  }
  const HostVector<float> prior_precisions = state.prior.lambda_full();
  if (one_precision || phase.family != Family::isotropic) {
    state.prior = in_family(std::move(state.prior), phase.family);
  }
  if (phase.algorithm->point_estimate) {
    state.global = from_mean(carried_mean, 1.0f);
  } else if (phase.factors == FactorStart::flat) {
    state.global = state.prior;
  } else {
    // Where no precision is inferred the prior's is all there is.
    const bool proper_prior = min_value(prior_precisions) > 0;
    if (phase.algorithm->infers_precision || !proper_prior) {
      check_positive("phase.inference", "alpha", phase.alpha);
    }
    const double n = double(population.examples());
    check_positive("begin_phase", "number of examples", n);
    HostVector<float> lambda = prior_precisions;
    for (float& precision : lambda.span()) precision = float(double(precision) + phase.alpha * n);
    Message global = one_precision ? from_mean(carried_mean, lambda[0])
                                   : from_mean(carried_mean, std::move(lambda));
    const HostVector<float> factors_eta = global.eta() - state.prior.eta();
    state.unvisited.per_example =
        in_family(Message(float(1 / n) * factors_eta, float(phase.alpha)), phase.family);
    state.global = in_family(std::move(global), phase.family);
  }
  state.factors = {};
  if (phase.algorithm->step == StepRule::admm) {
    state.factors = phase.algorithm->point_estimate
                        ? flat_like(state.global.eta(), state.global.family())
                        : state.global;
  }
  const bool carry = phase.carries_optimizer && !first;
  state.optimizer =
      carry ? carried(old, state.global) : initial_state(phase.server_optimizer, state.global);
  return state;
}

}  // namespace fedep
