#include "fedep/cuda/round/device_state.h"

#include "fedep/message/check.h"

namespace fedep {
namespace {

DeviceVector point_of(const DeviceServerState& state, bool proper) {
  const DeviceMessage& q = state.global;
  if (proper) {
    return q.isotropic() ? q.eta() / q.lambda_scalar() : q.eta() / q.lambda_vector();
  }
  if (state.initial.size() == q.size()) return estimate_points(q, state.initial);
  throw RunError(fmt::format("round {}: q must be finite, but has NaN or infinity", state.round));
}

}  // namespace

DeviceServerState to_device(const ServerState& state) {
  return {.round = state.round,
          .phase = state.phase,
          .initial = to_device(state.initial),
          .prior = to_device(state.prior),
          .global = to_device(state.global),
          .factors = to_device(state.factors),
          .optimizer = to_device(state.optimizer),
          .unvisited = {to_device(state.unvisited.per_example)},
          .step_scales = state.step_scales,
          .grid = state.grid,
          .average = {.rounds = state.average.rounds,
                      .mean = to_device(state.average.mean),
                      .variance = to_device(state.average.variance),
                      .lambda = to_device(state.average.lambda),
                      .lambda_number = state.average.lambda_number},
          .temperatures = state.temperatures};
}

void bring_home(const DeviceServerState& from, ServerState& to) {
  to.round = from.round;
  to.grid = from.grid;
  to.step_scales = from.step_scales;
  to.global = to_host(from.global);
  to.factors = to_host(from.factors);
  to.optimizer = to_host(from.optimizer);
  to.average = to_host(from.average);
}

ServerAverage to_host(const ServerAverageOf<DeviceVector>& average) {
  return {.rounds = average.rounds,
          .mean = to_host(average.mean),
          .variance = to_host(average.variance),
          .lambda = to_host(average.lambda),
          .lambda_number = average.lambda_number};
}

void average_in(float gain, const DeviceVector& x, DeviceVector& mean, DeviceVector* variance) {
  gpu::average_in(gain, x.size(), x.data(), mean.data(),
                  variance != nullptr ? variance->data() : nullptr, device_stream());
}

DeviceVector point_estimate(const DeviceServerState& state) {
  return point_of(state, facts_of({&state.global})[0].proper);
}

RoundStartOf<DeviceVector> begin_round(const DeviceServerState& state, bool) {
  const MessageFacts facts = facts_of({&state.global})[0];  // magnitudes come with the rest
  return {.mean = point_of(state, facts.proper), .magnitudes = facts.largest};
}

Magnitudes magnitudes(const DeviceMessage& message) { return facts_of({&message})[0].largest; }

}  // namespace fedep
