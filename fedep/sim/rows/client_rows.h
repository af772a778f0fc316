// A client's training examples as the rows of a generalised linear model (inference/glm_rows.h), for a
// linear model of dense features and one output: its weights, then its intercept.
#pragma once

#include <cstddef>
#include <string>

#include "fedep/data/dataset.h"
#include "fedep/inference/glm_rows.h"
#include "fedep/model/likelihood.h"

namespace fedep {

// Whether rows can be made of such outcomes.
bool has_rows(TargetKind target);

GlmRows rows_of(const Dataset& data, std::size_t client, const Likelihood& likelihood);

}  // namespace fedep
