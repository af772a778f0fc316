// Some rounds of a recipe's last phase, played for their time alone.
#pragma once

#include <cstddef>

#include "fedep/config/recipe.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/task.h"

namespace fedep {

struct BenchPlan {
  Recipe recipe;
  int warm_up = 1;  // rounds before the clock starts
  int rounds = 3;   // that are timed
  bool evaluate = true;
};

// Seconds and counts over all timed rounds.
struct RoundTimes {
  PlaceGauge gauge;
  std::size_t clients = 0;  // a round
  std::size_t rounds = 0;
  std::size_t steps = 0;  // of all clients
  double training = 0;    // SGD steps; on the CPU all of local inference
  double other = 0;       // the rest: on the GPU the methods' arithmetic; deltas, the server
  double evaluation = 0;  // of `evaluations`
  std::size_t evaluations = 0;
};

// Throws InputError if the place cannot play the task.
RoundTimes bench_rounds(const BenchPlan& plan, Task& task, const PlaceRow& where,
                        const PlaceOptions& options);

}  // namespace fedep
