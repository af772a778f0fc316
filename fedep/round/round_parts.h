// The parts of a round that do not touch messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "fedep/round/grid.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/task.h"

namespace fedep {

// How far q is from the product of prior and factors (factor_gap.h); NaN: nobody looked.
struct FactorGap {
  double eta = std::numeric_limits<double>::quiet_NaN();
  double lambda = std::numeric_limits<double>::quiet_NaN();
};

// How far q has yet to go, if it goes on as in the last two windows (convergence.h).
struct MovesLeft {
  double mean = 0, log_sd = 0;

  double most() const { return mean > log_sd ? mean : log_sd; }
  bool operator==(const MovesLeft&) const = default;
};

// What a round says of how far q moves (convergence.h).
struct WindowNumbers {
  std::int64_t begins = 0;  // length in rounds of the window that begins with this round; 0: none
  bool ends = false;        // a window does, in which q moved by
  double mean_moved = 0;    // the largest |Δ mean| / deviation; infinity where q was improper,
  double log_sd_moved = 0;  // and the largest |Δ log deviation|
  bool judged = true;       // the server's rate was the same in all of its rounds
  std::optional<MovesLeft> left = {};  // nothing: nobody can tell
};

// What a round was like; the run log's counters.
struct RoundNumbers {
  std::size_t asked = 0;
  std::size_t answered = 0;  // with a delta that was added
  std::size_t dropped = 0;   // no report, or a failed one
  std::size_t outside_grid = 0;
  std::size_t diverged = 0;  // of these: with NaN or infinity
  std::size_t skipped = 0;   // clients the guard left out
  std::size_t clipped = 0;
  std::size_t rounded_away = 0;       // clients whose delta the clip norm's grid does not hold
  std::size_t improper_cavities = 0;  // clients with one
  std::size_t improper_global = 0;    // coordinates of the new global before the guard acted
  double step_scale = 1;              // of the server's step, below 1 after a back-off
  double condition = 0;               // of the new q's precision matrix in the full family, else 0
  FactorGap factor_gap = {};          // after it, in rounds that end a phase or are checkpoints
  std::size_t steps = 0;              // minibatch steps of all clients
  double loss_sum = 0;                // over those steps
  std::uint64_t bytes_up = 0;         // payload of deltas, as they would travel
  std::uint64_t bytes_down = 0;       // payload of tasks
  WindowNumbers window = {};

  // Deltas for which a coarser grid would make room.
  std::size_t too_large() const { return outside_grid - diverged; }
  // Guard interventions and observations of any kind.
  std::size_t guarded() const { return improper_cavities + (improper_global > 0); }
};

// Indices of the clients that round `round` asks, ascending.
std::vector<std::size_t> sample_clients(std::uint64_t seed, std::int64_t round,
                                        std::size_t population, std::size_t asked);

// Weights and shares of those asked.
std::vector<ClientTask> make_tasks(const std::vector<std::size_t>& clients, const Phase& phase,
                                   const Population& population);

GridChoice grid_choice(const Phase& phase, const std::vector<ClientTask>& tasks, double damping);

struct Tally {
  RoundNumbers numbers;
  std::vector<std::size_t> taken;  // clients whose deltas were added
  double weight_taken = 0;
};

// Reports in any order; losses and weights are floats and added up in client order. `elements`:
// numbers in a message, on the wire of `bits` each.
Tally tally(std::vector<Report> reports, std::size_t asked, std::size_t elements, int bits);

// Numbers that a message has.
template <Storage V>
std::size_t numbers_of(const Gaussian<V>& message) {
  return message.size() + lambda_size(message.family(), message.size());
}

// Weights were shares of the examples asked for: what makes them shares of those that came.
double renormalisation(const Phase& phase, const Tally& tally);

}  // namespace fedep
