// Selective prediction for people and for programs: errors among the examples that a posterior is surest of.
//
//   "selective": {"coverage": [0.1, …, 1],
//                 "point": {"risk": [error at each coverage], "area", "least_area", "entropy"},
//                 "marginal": …, "mutual_information": …}     the last two where there are draws
#pragma once

#include <string>

#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"

namespace fedep {

// Null where the outcome has no classes.
Json selective_json(const PosteriorEvaluation& scores);
// Empty where the outcome has no classes.
std::string selective_text(const PosteriorEvaluation& scores);

}  // namespace fedep
