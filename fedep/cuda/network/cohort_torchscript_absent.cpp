// What cohort_torchscript.h is in a build without torch, or with a torch that has no CUDA.
#include "fedep/cuda/network/cohort_torchscript.h"
#include "fedep/message/error.h"

namespace fedep {

std::unique_ptr<CohortModel> make_cohort_torchscript(const ModelSettings&, const DatasetInfo&,
                                                     const CohortCapacity&) {
  throw InputError(
      "model torchscript on the GPU needs a build with -DFEDEP_WITH_CUDA=ON, -DFEDEP_WITH_TORCH=ON "
      "and a torch that has CUDA, but this one is without; use --device cpu");
}

}  // namespace fedep
