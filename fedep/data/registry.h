// The data sets there are, by name.
//
//   const std::unique_ptr<Dataset> data = open_dataset(recipe.data, recipe.seed, data_folder);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

// What data.partition means to a data set.
enum class PartitionUse {
  natural,      // nothing else than natural: clients are named by the data, or made up with them
  partitioned,  // which examples are whose
  imported,     // nothing any more: a recipe may keep what its data were imported with
};

struct DatasetRow {
  std::string_view name;
  std::string_view summary;
  // `folder` is where data sets live: data.path is below it.
  std::unique_ptr<Dataset> (*open)(const DataSettings& settings, std::uint64_t seed,
                                   const std::filesystem::path& folder);
  PartitionUse partition = PartitionUse::natural;
};

std::span<const DatasetRow> datasets();

// Reads and checks everything. Throws InputError for a name that is not in the table (`toy`, which
// has Gaussians and no examples, is not) and for files that are missing or wrong.
std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder);

}  // namespace fedep
