// A client's training examples as the rows of a generalised linear model (inference/rows/glm_rows.h), for a
// linear model of dense features: its weights, then its intercept. One output, or one for each of several
// classes.
#pragma once

#include <cstddef>
#include <string>

#include "fedep/data/dataset.h"
#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/glm_rows.h"
#include "fedep/model/likelihood.h"

namespace fedep {

// Whether rows can be made of such outcomes.
bool has_rows(TargetKind target);

// Throws InputError for outcomes of another kind.
GlmRows rows_of(const Dataset& data, std::size_t client, const Likelihood& likelihood);
ClassRows class_rows_of(const Dataset& data, std::size_t client);

}  // namespace fedep
