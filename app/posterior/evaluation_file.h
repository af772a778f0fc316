// evaluation.json in a run directory: the last evaluation in more detail than the log has, for the
// page's reliability diagrams.
//
//   write_evaluation(run / "evaluation.json", evaluation_json(state.round, reliability));
//
// {"round": 100, "reliability": {"point": [{"confidence": 0.71, "accuracy": 0.69, "weight": 0.08}
// × 15], "marginal": […]}}. A weight is the fraction of forecasts in the bin; an empty bin has no
// confidence and no accuracy: null. Its bytes depend on recipe, seed and round alone.
#pragma once

#include <cstdint>
#include <filesystem>

#include "fedep/sim/task.h"
#include "fedep/store/json.h"

namespace fedep {

Json evaluation_json(std::int64_t round, const Reliability& reliability);
// Adds what it is after a temperature, as "point_calibrated" and "marginal_calibrated".
void add_calibrated(const Reliability& reliability, Json& evaluation);

// Replaces the file whole.
void write_evaluation(const std::filesystem::path& path, const Json& evaluation);

}  // namespace fedep
