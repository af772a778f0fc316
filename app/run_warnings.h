// What is no mistake in a recipe or its data, but will not end as its author thinks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/round/run_log.h"
#include "fedep/sim/task.h"

namespace fedep {

// A line each: records that were left out, nobody held out, nobody with a batch, a prior that makes
// clients diverge.
std::vector<std::string> warnings_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Task& task);

// What the held-out RMSE says of model.noise, where it says so clearly, in a line; else nothing.
// `examples` were scored.
std::string noise_doubt(const Metrics& scores, double noise, std::size_t examples);

}  // namespace fedep
