// Clipping a delta by the joint 2-norm of (Δeta, Δlambda) over all coordinates, as the reference's
// stateful runs do.
#pragma once

#include "fedep/message/gaussian.h"

namespace fedep {

// ‖(Δeta, Δlambda)‖₂; an isotropic Δlambda counts once per coordinate, and of a matrix every
// element does, those off the diagonal twice.
double joint_norm(const Message& delta);

// What to multiply a delta of this norm by: 1 below the limit, limit/norm from it on. No limit: 0
// or less.
double clip_factor(double norm, double limit);

}  // namespace fedep
