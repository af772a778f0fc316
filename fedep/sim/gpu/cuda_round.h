// Rounds whose messages never leave the GPU: what round/play_round, round/visit and a serial
// executor do, with all clients of a round as one cohort. Given the same local inference the host's
// bits come out, except where sums over all coordinates enter a message (a clip's norm, FedPA's
// products): those run in another order. The test allows 1e-6 and 1e-5 there.
//
//   CudaRounds rounds(recipe.seed, population, *inference, &sites);
//   hooks.play = [&](ServerState& state, const Phase& phase) { return rounds.play(state, phase); };
//   hooks.bring_home = [&](ServerState& state) { rounds.bring_home(state); };
//
// The host's state keeps its numbers (round, phase, grid) current; its messages are those of the
// last bring_home(). A state that does not go on where the last round ended (a new phase, a
// resumed run) is taken to the GPU anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/cuda/round/device_step.h"
#include "fedep/cuda/round/round_deltas.h"
#include "fedep/round/play_round.h"
#include "fedep/round/round_parts.h"
#include "fedep/sim/gpu/cuda_cohort.h"

namespace fedep {

class CudaRounds {
 public:
  // `sites` may be null if no phase is stateful. Clients' positions in the population are those in
  // the data set. Everything given must outlive this.
  CudaRounds(std::uint64_t seed, const Population& population, CudaInference& inference,
             DeviceSites* sites)
      : seed_(seed), population_(population), inference_(inference), sites_(sites) {}

  // Plays round state.round and moves the state on.
  RoundNumbers play(ServerState& state, const Phase& phase);
  // state's messages become what the GPU holds.
  void bring_home(ServerState& state);

  // q, and where chains start and predictions are made, for a state that this has played or would.
  const DeviceMessage& global(const ServerState& state);
  const DeviceVector& point(const ServerState& state);

 private:
  struct Asked;  // a client of the round

  void take(const ServerState& state);
  std::vector<Asked> prepare(const Phase& phase, const std::vector<ClientTask>& tasks,
                             std::int64_t round);
  void find_sites(const Phase& phase, std::vector<Asked>& asked, std::int64_t round);
  void make_cavities(const Phase& phase, std::vector<Asked>& asked) const;
  void remove_factors(const Phase& phase, std::vector<Asked>& asked) const;
  void guard_cavities(const Phase& phase, std::vector<Asked>& asked) const;
  std::vector<ClientRunOf<DeviceVector>> infer(const Phase& phase, std::int64_t round,
                                               std::vector<Asked>& asked);
  void add_delta(const Phase& phase, const Asked& client, const ClientRunOf<DeviceVector>& run,
                 RoundDeltas& deltas) const;
  DeviceMessage stepped(const Phase& phase, const DeviceMessage& total, double scale,
                        GuardOutcome& outcome);

  std::uint64_t seed_;
  const Population& population_;
  CudaInference& inference_;
  DeviceSites* sites_;

  // The state on the GPU, after `round_` rounds, in phase `phase_`.
  std::optional<std::int64_t> round_;
  std::int64_t phase_ = -1;
  DeviceVector initial_;
  DeviceMessage prior_, global_, per_example_;
  DeviceOptimizerState optimizer_;
  MessageFacts facts_;                 // of global_
  std::optional<DeviceVector> point_;  // of global_, once asked for
  SiteShape shape_;
};

}  // namespace fedep
