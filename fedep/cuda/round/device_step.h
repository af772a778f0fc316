// The server's step with messages on the GPU: optimizers, the positivity guard, and what must be
// known of a message to go on. Counterparts of optim/optimizer.h, optim/guard.h and round/grid.h;
// element by element they have the host's bits.
//
//   DeviceOptimizerState optimizer = to_device(state.optimizer);
//   advance(phase.server_optimizer, optimizer, next, total);
//   const GuardOutcome outcome = guard(phase.guard, global, next);  // optim/guard.h's template
#pragma once

#include <cstdint>
#include <vector>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/round/round_kernels.h"
#include "fedep/optim/guard.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/grid.h"

namespace fedep {

using DeviceOptimizerState = OptimizerStateOf<DeviceVector>;

DeviceOptimizerState to_device(const OptimizerState& state);
OptimizerState to_host(const DeviceOptimizerState& state);

void advance(const OptimizerSettings& settings, DeviceOptimizerState& state, DeviceMessage& x,
             const DeviceMessage& delta, double scale = 1.0);

// The step of one number, which is here.
void advance_number(const OptimizerStep& step, float& x, float g, const std::vector<float*>& slots);

std::size_t count_improper(const DeviceMessage& before, const DeviceMessage& after);
// The same for several `after` of one family at once, waiting for the GPU once.
std::vector<std::size_t> count_improper(const DeviceMessage& before,
                                        const std::vector<const DeviceMessage*>& after);
void raise_to_floor(const DeviceMessage& before, DeviceMessage& after, float floor);

// As the host's ==: a message with NaN equals none. Of one family and size.
bool same(const DeviceMessage& a, const DeviceMessage& b);

// Equal bits have equal ones. Waits for the GPU once.
std::uint64_t hash_of(const std::vector<const DeviceMessage*>& messages);

struct MessageFacts {
  bool proper = false;  // every precision positive, everything finite
  bool finite = false;
  Magnitudes largest;
};
// Several messages, waiting for the GPU once.
std::vector<MessageFacts> facts_of(const std::vector<const DeviceMessage*>& messages);

// round/server_state.h's point estimate of an improper q.
DeviceVector estimate_points(const DeviceMessage& q, const DeviceVector& initial);

}  // namespace fedep
