// The server's state on a GPU, and what a round must know of it before it begins.
//
//   DeviceServerState there = to_device(state);
//   play_round(there, phase, seed, population, executor);
//   bring_home(there, state);
#pragma once

#include "fedep/cuda/round/device_step.h"
#include "fedep/round/server_state.h"

namespace fedep {

using DeviceServerState = ServerStateOf<DeviceVector>;

DeviceServerState to_device(const ServerState& state);
// What rounds change: q, ADMM's product of factors, the optimizer, its steps' scales, the average,
// round and grid.
void bring_home(const DeviceServerState& from, ServerState& to);

ServerAverage to_host(const ServerAverageOf<DeviceVector>& average);
void average_in(float gain, const DeviceVector& x, DeviceVector& mean, DeviceVector* variance);

DeviceVector point_estimate(const DeviceServerState& state);
RoundStartOf<DeviceVector> begin_round(const DeviceServerState& state, bool with_magnitudes);
Magnitudes magnitudes(const DeviceMessage& message);

}  // namespace fedep
