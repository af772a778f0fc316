#include "fedep/data/registry.h"

#include <array>
#include <vector>

#include "fedep/data/cifar100.h"
#include "fedep/data/eicu.h"
#include "fedep/data/emnist62.h"
#include "fedep/data/femnist.h"
#include "fedep/data/heart_disease.h"
#include "fedep/data/idx.h"
#include "fedep/data/leaf.h"
#include "fedep/data/random_images.h"
#include "fedep/data/regression.h"
#include "fedep/data/shards.h"
#include "fedep/data/stackoverflow.h"
#include "fedep/data/stackoverflow_tff.h"
#include "fedep/data/synthetic.h"
#include "fedep/data/tabular.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::array kDatasets{
    DatasetRow{"synthetic", "synthetic(alpha, beta) of Li+20, made up on the spot", open_synthetic},
    DatasetRow{"regression", "linear regression with unit noise, made up on the spot",
               open_regression},
    DatasetRow{"random_images", "32x32 colour images with ten labels, made up on the spot",
               open_random_images},
    DatasetRow{"cifar100", "CIFAR-100, canonical binary files", open_cifar100},
    DatasetRow{"cifar100_pca", "CIFAR-100 projected to 100 principal components",
               open_cifar100_pca},
    DatasetRow{"emnist62", "EMNIST-62 as TFF ships it, HDF5 or SQLite", open_emnist62},
    DatasetRow{"femnist", "FEMNIST as plain files, by writer", open_femnist},
    DatasetRow{"leaf", "LEAF's JSON files of images", open_leaf},
    DatasetRow{"idx", "images and labels in IDX files", open_idx},
    DatasetRow{"stackoverflow", "tags of questions, a TSV of user, tags and text",
               open_stackoverflow},
    DatasetRow{"stackoverflow_tff", "tags of questions as TFF ships them, HDF5",
               open_stackoverflow_tff},
    DatasetRow{"tabular", "a CSV or TSV table with a client column", open_tabular},
    DatasetRow{"shards", "a file per client, as `fedep data import` writes them", open_shards},
    DatasetRow{"heart_disease", "UCI heart disease, four hospitals", open_heart_disease},
    DatasetRow{"eicu", "eICU demo: hospital mortality, 186 hospitals", open_eicu},
};

}  // namespace

std::span<const DatasetRow> datasets() { return kDatasets; }

std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder) {
  std::vector<std::string_view> names{"toy"};
  for (const DatasetRow& row : kDatasets) {
    if (row.name == settings.name) return row.open(settings, seed, folder);
    names.push_back(row.name);
  }
  throw InputError(unknown_name("data set", settings.name, names));
}

}  // namespace fedep
