// Risk calibration and the AUC's standard error, of yes-or-no outcomes, for people and for programs. What so
// few examples cannot tell is told in words.
//
//   "risk": {"point": {"examples", "events", "auc", "auc_se", "intercept", "intercept_se", "slope",
//                      "slope_se", "bins": [{"risk", "observed", "examples"}…], "missing": [sentence…]},
//            "marginal": …, "clients": [{"client", "point", "marginal"}…]}
//   with "point_calibrated" and "marginal_calibrated" where there is a temperature
#pragma once

#include <string>

#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"

namespace fedep {

// `calibrated`: the same after a temperature; null: there is none. Null where the outcome is another.
Json risk_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated = nullptr);
// Empty where the outcome is another. With draws, of predictions averaged over them. Clients' are after the
// temperature, where these predictions have one.
std::string risk_text(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated,
                      bool per_client);

}  // namespace fedep
