// Detection of unlike examples for people and for programs: how well each score tells them from held-out ones.
//
//   "detection": [{"unlike": what these examples are, "unlike_examples": 1000, "examples": 9000,
//                  "point": {"max_probability": {"auroc", "se"}, "entropy": …, "energy": …},
//                  "marginal": {…, "mutual_information": …},     where there are draws
//                  "point_calibrated": {"max_probability", "entropy"}, "marginal_calibrated": …}…]
//                                                                after a temperature, where there is one
#pragma once

#include <string>

#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"

namespace fedep {

// `calibrated` null: there is no temperature. Null, or empty, where there are no unlike examples.
Json detection_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated);
std::string detection_text(const PosteriorEvaluation& scores,
                           const PosteriorEvaluation* calibrated);

}  // namespace fedep
