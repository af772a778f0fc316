// The toy as a federated task: Gaussian clients of any number and dimension, exact inference.
// Scored by the distance between q's mean and the exact posterior's.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fedep/inference/exact.h"
#include "fedep/sim/task.h"

namespace fedep {

// The toy's own inference: the tilted distribution is known, and only has to be projected.
struct ToyMethod {
  std::string_view name;
  std::string_view title;  // for people
  std::string_view summary;
  Projection projection;
};
std::span<const ToyMethod> toy_methods();

// data.clients and data.dimension say how many and how large.
std::unique_ptr<Task> make_toy_task(const Recipe& recipe);

}  // namespace fedep
