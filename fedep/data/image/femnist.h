// FEMNIST as plain files: images.u8 (28x28 bytes each, 255 = background), labels.u8, writer.u16le
// (row of writers.tsv), leaf_split.u8 (0 train, 1 test, 2 neither) and writers.tsv (index,
// writer_id, complete, n_samples).
//
//   const std::unique_ptr<Dataset> data = open_femnist(settings, seed, "data");
//
// Natural clients are the writers with a training part: 366 with 52,731 images, and 6,146 to test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

// Reads folder / settings.path.
std::unique_ptr<Dataset> open_femnist(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder);

}  // namespace fedep
