// Selective prediction for people and for programs: errors among the examples that a posterior is surest of.
//
//   "selective": {"coverage": [0.1, …, 1],
//                 "point": {"risk": [error at each coverage], "area", "least_area", "entropy"},
//                 "marginal": …, "mutual_information": …,     where there are draws
//                 "point_calibrated": {"risk", "area", "least_area"}, "marginal_calibrated": …}
//                                                     by confidence after a temperature, where there is one
#pragma once

#include <string>

#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"

namespace fedep {

// `calibrated` null: there is no temperature. Null, or empty, where the outcome has no classes.
Json selective_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated);
// `average`: draws are around the server's average, and of no posterior.
std::string selective_text(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated,
                           bool average = false);

}  // namespace fedep
