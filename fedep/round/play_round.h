// One round (Guo+23 Alg. 1 and 3): sample clients, let the executor play their part, add what comes
// back, step the optimizer, guard the result.
#pragma once

#include <cstdint>
#include <vector>

#include "fedep/round/executor.h"
#include "fedep/round/population.h"
#include "fedep/round/server_state.h"

namespace fedep {

// What a round was like; the run log's counters.
struct RoundNumbers {
  std::size_t asked = 0;
  std::size_t answered = 0;  // with a delta that was added
  std::size_t dropped = 0;   // no report, or a failed one
  std::size_t outside_grid = 0;
  std::size_t diverged = 0;  // of these: with NaN or infinity
  std::size_t skipped = 0;   // clients the guard left out
  std::size_t clipped = 0;
  std::size_t improper_cavities = 0;  // clients with one
  std::size_t improper_global = 0;    // coordinates of the new global before the guard acted
  double step_scale = 1;              // of the server's step, below 1 after a back-off
  std::size_t steps = 0;              // minibatch steps of all clients
  double loss_sum = 0;                // over those steps
  std::uint64_t bytes_up = 0;         // payload of deltas, as they would travel
  std::uint64_t bytes_down = 0;       // payload of tasks

  // Deltas for which a coarser grid would make room.
  std::size_t too_large() const { return outside_grid - diverged; }
  // Guard interventions and observations of any kind.
  std::size_t guarded() const { return improper_cavities + (improper_global > 0); }
};

// Indices of the clients that round `round` asks, ascending.
std::vector<std::size_t> sample_clients(std::uint64_t seed, std::int64_t round,
                                        std::size_t population, std::size_t asked);

// Plays round state.round and moves the state on. If nothing was added q stays where it is.
RoundNumbers play_round(ServerState& state, const Phase& phase, std::uint64_t seed,
                        const Population& population, Executor& executor);

}  // namespace fedep
