// What is no mistake in a recipe or its data, but will not end as its author thinks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/metric/metrics.h"
#include "fedep/round/phase.h"
#include "fedep/sim/task.h"

namespace fedep {

// A line each: what the audit of a table found (of shards, which have none: records that were left out, columns that do not vary, nobody held out, nobody with a
// batch, cooldowns and schedules without effect or with too much, steps that calibration rows cost,
// clients of a table who are not all asked in a round,
// networks that begin with weights that are alike, a prior that makes clients diverge.
std::vector<std::string> warnings_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Task& task);

// A line for each phase whose q parts from the product of its factors, because of so many clients not
// all are asked and momentum acts on their visits.
std::vector<std::string> momentum_remarks(const std::vector<Phase>& phases, std::size_t clients);

// "steps a visit: 47 (fed_avg), 40 (fed_ep)", or nothing where clients make none.
std::string visit_steps_text(const Recipe& recipe, const std::vector<Phase>& phases,
                             const Task& task);

// Held-out outcomes that are numbers.
struct HeldOutNumbers {
  std::size_t examples = 0;  // that were scored
  double deviation = 0;      // of all of them around their mean: the RMSE of who predicts that
};
HeldOutNumbers held_out_numbers(const Dataset& data, int scored);  // 0: all were

// What held-out errors say of model.noise, where they say so clearly, in a line; else nothing. Errors
// are compared with the noise and the spread of draws together where the scores have draws. Where
// predicting the mean would do better the line says that, and nothing of the noise.
std::string noise_doubt(const Metrics& scores, double noise, const HeldOutNumbers& outcomes);

}  // namespace fedep
