// Rounds whose messages stay on the GPU from one to the next. The host's state keeps its numbers
// (round, phase, grid) current; its messages are those of the last bring_home(). A state that does
// not go on where the last round ended (a new phase, a resumed run) is taken to the GPU anew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "fedep/cuda/round/device_state.h"
#include "fedep/round/round_parts.h"
#include "fedep/sim/gpu/cuda_rows.h"

namespace fedep {

class CudaRounds {
 public:
  // As CudaRows.
  CudaRounds(std::uint64_t seed, const Population& population, CudaInference& inference,
             DeviceSites* sites)
      : CudaRounds(seed, population, std::make_unique<CudaExecutor>(population, inference, sites)) {
  }
  CudaRounds(std::uint64_t seed, const Population& population,
             std::unique_ptr<ExecutorOf<DeviceVector>> executor)
      : seed_(seed), population_(population), executor_(std::move(executor)) {}

  // Plays round state.round and moves the state on.
  RoundNumbers play(ServerState& state, const Phase& phase);
  // state's messages become what the GPU holds.
  void bring_home(ServerState& state);

  // What the GPU holds of a state that this has played or would.
  const DeviceServerState& on_gpu(const ServerState& state);

 private:
  bool holds(const ServerState& state) const {
    return there_ && there_->round == state.round && there_->phase == state.phase;
  }

  std::uint64_t seed_;
  const Population& population_;
  std::unique_ptr<ExecutorOf<DeviceVector>> executor_;
  std::optional<DeviceServerState> there_;
};

}  // namespace fedep
