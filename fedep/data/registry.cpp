#include "fedep/data/registry.h"

#include <array>
#include <vector>

#include "fedep/data/image/cifar100.h"
#include "fedep/data/image/emnist62.h"
#include "fedep/data/image/femnist.h"
#include "fedep/data/image/idx.h"
#include "fedep/data/image/leaf.h"
#include "fedep/data/made_up/random_images.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/partition.h"
#include "fedep/data/shard/shards.h"
#include "fedep/data/table/eicu.h"
#include "fedep/data/table/heart_disease.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/text/stackoverflow.h"
#include "fedep/data/text/stackoverflow_tff.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::array kDatasets{
    DatasetRow{"synthetic", "synthetic(alpha, beta) of Li+20, made up on the spot", open_synthetic},
    DatasetRow{"regression", "linear regression with unit noise, made up on the spot",
               open_regression},
    DatasetRow{"random_images", "32x32 colour images with ten labels, made up on the spot",
               open_random_images, PartitionUse::partitioned},
    DatasetRow{"cifar100", "CIFAR-100, canonical binary files", open_cifar100,
               PartitionUse::partitioned},
    DatasetRow{"cifar100_pca", "CIFAR-100 projected to 100 principal components", open_cifar100_pca,
               PartitionUse::partitioned},
    DatasetRow{"emnist62", "EMNIST-62 as TFF ships it, HDF5 or SQLite", open_emnist62,
               PartitionUse::partitioned},
    DatasetRow{"femnist", "FEMNIST as plain files, by writer", open_femnist,
               PartitionUse::partitioned},
    DatasetRow{"leaf", "LEAF's JSON files of images", open_leaf, PartitionUse::partitioned},
    DatasetRow{"idx", "images and labels in IDX files", open_idx, PartitionUse::partitioned},
    DatasetRow{"stackoverflow", "tags of questions, a TSV of user, tags and text",
               open_stackoverflow},
    DatasetRow{"stackoverflow_tff", "tags of questions as TFF ships them, HDF5",
               open_stackoverflow_tff},
    DatasetRow{"tabular", "a CSV or TSV table with a client column", open_tabular},
    DatasetRow{"shards", "a file per client, as `fedep data import` writes them", open_shards,
               PartitionUse::imported},
    DatasetRow{"heart_disease", "UCI heart disease, four hospitals", open_heart_disease},
    DatasetRow{"eicu", "eICU demo: hospital mortality, 186 hospitals", open_eicu},
};

// Those that partition check what they can do themselves, once they know their clients.
void check_partition(const DatasetRow& row, const DataSettings& settings) {
  if (row.partition == PartitionUse::natural) check_natural_partition(settings);
  check_partition_name(settings.partition);
}

}  // namespace

std::span<const DatasetRow> datasets() { return kDatasets; }

std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder) {
  if (settings.name == "toy") {
    throw InputError("data set must have examples, but toy has none: its clients are Gaussians");
  }
  std::vector<std::string_view> names{"toy"};
  for (const DatasetRow& row : kDatasets) {
    names.push_back(row.name);
    if (row.name != settings.name) continue;
    check_partition(row, settings);
    return row.open(settings, seed, folder);
  }
  throw InputError(unknown_name("data set", settings.name, names));
}

}  // namespace fedep
