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
          .optimizer = to_device(state.optimizer),
          .unvisited = {to_device(state.unvisited.per_example)},
          .grid = state.grid};
}

void bring_home(const DeviceServerState& from, ServerState& to) {
  to.round = from.round;
  to.grid = from.grid;
  to.global = to_host(from.global);
  to.optimizer = to_host(from.optimizer);
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
