// Risk calibration and the AUC's standard error, of yes-or-no outcomes, for people and for programs. What so
// few examples cannot tell is told in words.
//
//   "risk": {"point": {"examples", "events", "auc", "auc_se", "intercept", "intercept_se", "slope",
//                      "slope_se", "bins": [{"risk", "observed", "examples"}…], "missing": [sentence…]},
//            "marginal": …, "clients": [{"client", "point", "marginal"}…]}
#pragma once

#include <string>

#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"

namespace fedep {

// Null where the outcome is another.
Json risk_json(const PosteriorEvaluation& scores);
// Empty where the outcome is another. With draws, of predictions averaged over them.
std::string risk_text(const PosteriorEvaluation& scores, bool per_client);

}  // namespace fedep
