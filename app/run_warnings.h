// What is no mistake in a recipe or its data, but will not end as its author thinks.
#pragma once

#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/sim/task.h"

namespace fedep {

// A line each: records that were left out, nobody held out, nobody with a batch, a prior that makes
// clients diverge.
std::vector<std::string> warnings_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Task& task);

}  // namespace fedep
