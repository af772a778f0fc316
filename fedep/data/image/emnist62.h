// Federated EMNIST with 62 classes, in whichever of its layouts the folder has: plain files, LEAF's
// JSON, TFF's HDF5 or TFF's SQLite (femnist.h, leaf.h, tff_hdf5.h, tff_sqlite.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

// Reads folder / settings.path. Throws InputError if that has none of the layouts or more than one.
std::unique_ptr<Dataset> open_emnist62(const DataSettings& settings, std::uint64_t seed,
                                       const std::filesystem::path& folder);

}  // namespace fedep
