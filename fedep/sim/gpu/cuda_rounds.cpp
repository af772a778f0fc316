#include "fedep/sim/gpu/cuda_rounds.h"

#include "fedep/round/play_round.h"

namespace fedep {

const DeviceServerState& CudaRounds::on_gpu(const ServerState& state) {
  if (!holds(state)) there_ = to_device(state);
  return *there_;
}

RoundNumbers CudaRounds::play(ServerState& state, const Phase& phase) {
  on_gpu(state);
  const RoundNumbers numbers = play_round(*there_, phase, seed_, population_, *executor_);
  state.round = there_->round;
  state.grid = there_->grid;
  return numbers;
}

void CudaRounds::bring_home(ServerState& state) {
  if (holds(state)) fedep::bring_home(*there_, state);  // else the host's is all there is
}

}  // namespace fedep
