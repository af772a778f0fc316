// A run whose messages live on a GPU and whose clients train there, all of a round at once: the
// place `cuda` (sim/place/places.h). A build without CUDA has this header too, and says what is missing
// (cuda_place_absent.cpp).
#pragma once

#include <memory>
#include <string>

#include "fedep/sim/place/places.h"

namespace fedep {

std::string cuda_problem();
std::string cuda_text(const PlaceOptions& options);
std::string cuda_remark(const Recipe& recipe);
Processor cuda_processor();
void check_cuda_place(const Recipe& recipe, const Task& task);
std::unique_ptr<Place> make_cuda_place(const Recipe& recipe, Task& task, SiteStore& home,
                                       const PlaceOptions& options);

// The same where several ranks play together, each with a GPU of its machine, by its number there; with
// fewer GPUs than ranks they share. claim_cuda_of_rank() takes the GPU, where there is one.
void claim_cuda_of_rank();
std::string cuda_ranks_problem();
std::string cuda_ranks_text(const PlaceOptions& options);
std::unique_ptr<Place> make_cuda_ranks_place(const Recipe& recipe, Task& task, SiteStore& home,
                                             const PlaceOptions& options);

}  // namespace fedep
