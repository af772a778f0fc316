// CIFAR-100 in its canonical binary form: train.bin and test.bin, each record a coarse label, a
// fine label and 32x32 pixels as three planes. Models see 24x24x3 floats: a random crop and flip in
// training, else the centre, each image standardised (image_augment.h). Labels are the fine ones.
//
//   const std::unique_ptr<Dataset> data = open_cifar100(settings, seed, "data");
//
// Partitions: "given" by pam_train.i32 and pam_test.i32 (settings.examples a client, 500 and 100
// clients), pachinko, dirichlet, iid. Names of labels come from fine_label_names.txt if it is
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

// Records the files must have.
struct Cifar100Counts {
  std::size_t train = 50000;
  std::size_t test = 10000;
};

// Reads folder / settings.path. Without settings.augment every image is the centre crop.
std::unique_ptr<Dataset> open_cifar100(const DataSettings& settings, std::uint64_t seed,
                                       const std::filesystem::path& folder);
std::unique_ptr<Dataset> open_cifar100(const DataSettings& settings, std::uint64_t seed,
                                       const std::filesystem::path& folder,
                                       const Cifar100Counts& counts);

// The same images, projected onto 100 principal components of the centre crops of all training
// images, centred, not whitened. The fit takes some seconds once; it is kept in $FEDEP_CACHE, else
// beside the data if that can be written, and found again by a hash of the training images.
inline constexpr std::size_t kCifarPcaComponents = 100;
std::unique_ptr<Dataset> open_cifar100_pca(const DataSettings& settings, std::uint64_t seed,
                                           const std::filesystem::path& folder);
std::unique_ptr<Dataset> open_cifar100_pca(const DataSettings& settings, std::uint64_t seed,
                                           const std::filesystem::path& folder,
                                           const Cifar100Counts& counts);

}  // namespace fedep
