// A checkpoint with the precision matrix of its run's last round of curvature (store/curvature_file.h) in place
// of its own precisions, so that a page shows the deviations that commands tell.
#pragma once

#include "fedep/round/diagnosis/curvature.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {

// Λ = prior's precision + the sum of Hessians. Throws InputError if they are not of one model.
SafetensorsFile with_curvature(SafetensorsFile checkpoint, const Curvature& curvature);

}  // namespace fedep
