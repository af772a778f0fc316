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
#include "fedep/data/made_up/planned_size.h"

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
  // `folder` is where data sets live: data.path is below it. Null: the clients are Gaussians, without
  // examples (sim/toy/toy_task.h).
  std::unique_ptr<Dataset> (*open)(const DataSettings& settings, std::uint64_t seed,
                                   const std::filesystem::path& folder);
  PartitionUse partition = PartitionUse::natural;
  bool holds_out = false;  // data.test_fraction of the examples; else the data bring their test set
  // Images of the same kind to be predicted, from a file (image/image_file.h); null: there is none.
  Batch (*read_images)(const std::filesystem::path& file, const DatasetInfo& data,
                       const PcaProjection* projection) = nullptr;

  // Of data that are made up: their size before they are; null: files say it.
  PlannedSize (*planned)(const DataSettings& settings) = nullptr;

  bool has_examples() const { return open != nullptr; }
};

std::span<const DatasetRow> datasets();

// Throws InputError that suggests the nearest name.
const DatasetRow& find_dataset(std::string_view name);

// Reads and checks everything. Throws InputError for a name that is not in the table, for data
// without examples and for files that are missing or wrong.
std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder);

// Images to be predicted, as data of this description, and with this projection (RawImages), have them. Throws
// InputError for data whose images come from no file, and as their reader does.
Batch read_images(const std::filesystem::path& file, const DatasetInfo& data,
                  const PcaProjection* projection = nullptr);

}  // namespace fedep
