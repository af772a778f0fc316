// Made-up colour images with ten labels, 32x32x3 bytes: CIFAR-10's shape, for jobs that measure
// speed. They need no file. Each label has a picture of its own, 4x4 tiles of random colours, and an
// image is half its label's picture and half uniform noise:
//
//   pixel = picture[label][place] + noise     picture in 0..127, noise uniform on 0..127
//
// so a model that learns anything is soon right. Client k, "client-k", has data.examples training
// images, labels uniform and independent; data.test_fraction times as many come on top as its test
// set. data.partition other than natural pools all images and gives them out anew.
//
// Numbers are addressed by (seed, client, example): more clients or more examples do not change the
// first ones.
//
//   open_random_images({.clients = 1000, .examples = 50}, seed);   // and 10,000 test images
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

inline constexpr std::size_t kRandomImageSide = 32;
inline constexpr std::size_t kRandomImageClasses = 10;

std::unique_ptr<Dataset> open_random_images(const DataSettings& settings, std::uint64_t seed,
                                            const std::filesystem::path& folder = {});

}  // namespace fedep
