// TFF's federated EMNIST as HDF5, fed_emnist_train.h5 and fed_emnist_test.h5: a group
// examples/CLIENT for each client, in it `pixels` [n, 28, 28] (numbers in 0..1, 1 = background) and
// `label` [n].
//
//   const std::unique_ptr<Dataset> data = open_tff_hdf5(settings, seed, "data");
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/image/image_dataset.h"

namespace fedep {

// Appends a file's examples, clients in order of their names, and returns how many were bad: a
// pixel outside [0, 1], a label that is not 0 to 61. A file of another form is refused.
std::size_t read_tff_hdf5(const std::filesystem::path& path, ImagePart& part);

// Reads folder / settings.path. HDF5 is used while this runs, from this thread only.
std::unique_ptr<Dataset> open_tff_hdf5(const DataSettings& settings, std::uint64_t seed,
                                       const std::filesystem::path& folder);

}  // namespace fedep
