// What sim/gpu/cuda_place.h is in a build without CUDA.
#include "fedep/message/error.h"
#include "fedep/sim/gpu/cuda_place.h"

namespace fedep {

std::string cuda_problem() { return "this build has no CUDA: configure with -DFEDEP_WITH_CUDA=ON"; }

std::string cuda_text(const PlaceOptions&) { throw InputError(cuda_problem()); }

std::string cuda_remark(const Recipe&) { return ""; }

Processor cuda_processor() { throw InputError(cuda_problem()); }

void claim_cuda_of_rank() {}

std::string cuda_ranks_problem() { return cuda_problem(); }

std::string cuda_ranks_text(const PlaceOptions&) { throw InputError(cuda_problem()); }

void check_cuda_place(const Recipe&, const Task&) { throw InputError(cuda_problem()); }

std::unique_ptr<Place> make_cuda_place(const Recipe&, Task&, SiteStore&, const PlaceOptions&) {
  throw InputError(cuda_problem());
}

std::unique_ptr<Place> make_cuda_ranks_place(const Recipe&, Task&, SiteStore&,
                                             const PlaceOptions&) {
  throw InputError(cuda_problem());
}

}  // namespace fedep
