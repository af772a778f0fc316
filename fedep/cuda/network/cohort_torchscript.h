// A TorchScript module as a cohort's model. Torch knows nothing of many clients at once, so they
// take turns: of each the forward pass, our loss, autograd, our update, all in one captured step.
// This is the slower path; models with kernels of their own run all clients at once.
//
//   const auto model = make_cohort_torchscript(settings, info, {.clients = 20, .rows = 20});
//
// Weights are views of the cohort's rows, nothing is copied. Batches are filled up to `rows`
// examples, those beyond counts[c] with derivative zero, so examples of a batch must not affect one
// another. Dropout is seeded from its address as on a CPU, but the masks that torch makes of a seed
// are not the CPU's.
#pragma once

#include <memory>

#include "fedep/cuda/network/cohort_model.h"

namespace fedep {

// Tries the module out, with a step that is captured. Throws InputError for what make_torchscript()
// refuses, in a build without torch or whose torch has no CUDA, for modules that fail on the GPU or read values back there, and for those in which
// examples of a batch affect one another.
std::unique_ptr<CohortModel> make_cohort_torchscript(const ModelSettings& settings,
                                                     const DatasetInfo& data,
                                                     const CohortCapacity& capacity);

}  // namespace fedep
