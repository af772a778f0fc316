// The parts of a round that do not touch messages, shared by play_round() and by places that keep
// messages elsewhere (sim/gpu/cuda_round.h).
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/round/grid.h"
#include "fedep/round/phase.h"
#include "fedep/round/play_round.h"
#include "fedep/round/population.h"
#include "fedep/round/task.h"

namespace fedep {

// Weights and shares of those asked.
std::vector<ClientTask> make_tasks(const std::vector<std::size_t>& clients, const Phase& phase,
                                   const Population& population);

GridChoice grid_choice(const Phase& phase, const std::vector<ClientTask>& tasks, double damping);

struct Tally {
  RoundNumbers numbers;
  std::vector<std::size_t> taken;  // clients whose deltas were added
  double weight_taken = 0;
};

// Reports in client order: losses and weights are floats. `elements`: numbers in a message, on the
// wire of `bits` each.
Tally tally(const std::vector<Report>& reports, std::size_t asked, std::size_t elements, int bits);

// Weights were shares of the examples asked for: what makes them shares of those that came.
double renormalisation(const Phase& phase, const Tally& tally);

}  // namespace fedep
