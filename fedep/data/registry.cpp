#include "fedep/data/registry.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/image/cifar100.h"
#include "fedep/data/image/emnist62.h"
#include "fedep/data/image/femnist.h"
#include "fedep/data/image/idx.h"
#include "fedep/data/image/image_file.h"
#include "fedep/data/image/leaf.h"
#include "fedep/data/kept_clients.h"
#include "fedep/data/made_up/random_images.h"
#include "fedep/data/made_up/random_tags.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/data/shard/shards.h"
#include "fedep/data/table/eicu.h"
#include "fedep/data/table/heart_disease.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/text/stackoverflow.h"
#include "fedep/data/text/stackoverflow_tff.h"
#include "fedep/message/table.h"

namespace fedep {
namespace {

constexpr std::array kDatasets{
    DatasetRow{.name = "toy",
               .summary = "Gaussian clients of the toy experiment; inference exact only",
               .open = nullptr,
               .planned = toy_size},
    DatasetRow{.name = "synthetic",
               .summary = "synthetic(alpha, beta) of Li+20, made up on the spot",
               .open = open_synthetic,
               .holds_out = true,
               .planned = synthetic_size},
    DatasetRow{.name = "regression",
               .summary = "linear regression with unit noise, made up on the spot",
               .open = open_regression,
               .holds_out = true,
               .planned = regression_size},
    DatasetRow{.name = "random_images",
               .summary = "32x32 colour images with ten labels, made up on the spot",
               .open = open_random_images,
               .partition = PartitionUse::partitioned,
               .holds_out = true,
               .planned = random_images_size},
    DatasetRow{.name = "random_tags",
               .summary = "tags of questions in StackOverflow's shape, made up when visited",
               .open = open_random_tags,
               .planned = random_tags_size},
    DatasetRow{.name = "cifar100",
               .summary = "CIFAR-100, canonical binary files",
               .open = open_cifar100,
               .partition = PartitionUse::partitioned,
               .read_images = read_cifar_records},
    DatasetRow{.name = "cifar100_pca",
               .summary = "CIFAR-100 projected to 100 principal components",
               .open = open_cifar100_pca,
               .partition = PartitionUse::partitioned,
               .read_images = read_cifar_records},
    DatasetRow{.name = "emnist62",
               .summary = "EMNIST-62 as TFF ships it, HDF5 or SQLite",
               .open = open_emnist62,
               .partition = PartitionUse::partitioned,
               .read_images = read_byte_images},
    DatasetRow{.name = "femnist",
               .summary = "FEMNIST as plain files, by writer",
               .open = open_femnist,
               .partition = PartitionUse::partitioned,
               .read_images = read_byte_images},
    DatasetRow{.name = "leaf",
               .summary = "LEAF's JSON files of images",
               .open = open_leaf,
               .partition = PartitionUse::partitioned,
               .read_images = read_byte_images},
    DatasetRow{.name = "idx",
               .summary = "images and labels in IDX files",
               .open = open_idx,
               .partition = PartitionUse::partitioned,
               .read_images = read_byte_images},
    DatasetRow{.name = "stackoverflow",
               .summary = "tags of questions, a TSV of user, tags and text",
               .open = open_stackoverflow,
               .holds_out = true},
    DatasetRow{.name = "stackoverflow_tff",
               .summary = "tags of questions as TFF ships them, HDF5",
               .open = open_stackoverflow_tff},
    DatasetRow{.name = "tabular",
               .summary = "a CSV or TSV table with a client column",
               .open = open_tabular,
               .holds_out = true},
    DatasetRow{.name = "shards",
               .summary = "a file per client, as `fedep data import` writes them",
               .open = open_shards,
               .partition = PartitionUse::imported},
    DatasetRow{.name = "heart_disease",
               .summary = "UCI heart disease, four hospitals",
               .open = open_heart_disease,
               .holds_out = true},
    DatasetRow{.name = "eicu",
               .summary = "eICU demo: hospital mortality, 186 hospitals",
               .open = open_eicu,
               .holds_out = true},
};

// Those that partition check what they can do themselves, once they know their clients.
void check_partition(const DatasetRow& row, const DataSettings& settings) {
  find_partition(settings.partition);
  if (row.partition == PartitionUse::natural) check_natural_partition(settings);
}

}  // namespace

std::span<const DatasetRow> datasets() { return kDatasets; }

const DatasetRow& find_dataset(std::string_view name) {
  return find_row("data set", kDatasets, name);
}

std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder) {
  const DatasetRow& row = find_dataset(settings.name);
  if (!row.has_examples()) {
    throw InputError(fmt::format(
        "data set must have examples, but {} has none: its clients are Gaussians", row.name));
  }
  check_partition(row, settings);
  const std::uint64_t draw = settings.partition_seed.value_or(seed);
  std::unique_ptr<Dataset> data = row.open(settings, draw, folder);
  if (settings.keep_clients == 0) return data;
  return kept_clients(std::move(data), std::size_t(settings.keep_clients), draw);
}

Batch read_images(const std::filesystem::path& file, const DatasetInfo& data,
                  const PcaProjection* projection) {
  std::vector<std::string_view> others;
  for (const DatasetRow& row : kDatasets) {
    if (row.read_images == nullptr) continue;
    if (row.name == data.name) return row.read_images(file, data, projection);
    others.push_back(row.name);
  }
  throw InputError(
      fmt::format("predict: data must be a table, {}, but are {}, for which no file can be read",
                  fmt::join(others, ", "), data.name));
}

}  // namespace fedep
