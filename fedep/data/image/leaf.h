// FEMNIST as LEAF writes it: folders train/ and test/ of JSON files, each
//   {"users": [id, …], "num_samples": [n, …], "user_data": {id: {"x": [[784 numbers in 0..1], …], "y": [label, …]}}}
//
//   const std::unique_ptr<Dataset> data = open_leaf(settings, seed, "data");
//
// Files are taken in order of their names and read as a stream: only one user's images wait in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/image/image_dataset.h"

namespace fedep {

// Appends a file's examples and returns how many records were bad: an image that is not 784 numbers
// in [0, 1], a label that is not 0 to 61. A file of another form is refused with an InputError.
std::size_t read_leaf_file(const std::filesystem::path& path, ImagePart& part);

// Reads folder / settings.path.
std::unique_ptr<Dataset> open_leaf(const DataSettings& settings, std::uint64_t seed,
                                   const std::filesystem::path& folder);

}  // namespace fedep
