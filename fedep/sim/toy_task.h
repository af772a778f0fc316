// The toy as a federated task: Gaussian clients of any number and dimension, exact inference.
// Scored by the distance between q's mean and the exact posterior's.
#pragma once

#include <memory>

#include "fedep/sim/task.h"

namespace fedep {

// data.clients and data.dimension say how many and how large.
std::unique_ptr<Task> make_toy_task(const Recipe& recipe);

}  // namespace fedep
