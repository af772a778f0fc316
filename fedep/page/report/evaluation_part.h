// What the page takes from evaluation.json, which may hold anything: the page gets what it expects, and null for the
// rest.
#pragma once

#include "fedep/store/json.h"

namespace fedep {

// {"reliability": {"point": […], "point_calibrated": …, "marginal": […], "marginal_calibrated": …}, "risk": {…}, "per_client": […],
//  "selective": {"coverage": […], "curves": {"point": {"risk": […], "area"}, "mutual_information": …}},
//  "detection": [{"unlike": text, "unlike_examples", "examples",
//                 "scores": {"point": {"entropy": {"auroc", "se"}…}, "marginal": …}}…]}, each or null
Json evaluation_part(const Json& file);

}  // namespace fedep
