// IDX files, the format of MNIST and its kin: images as unsigned bytes [n, height, width] or [n,
// height, width, channels], labels as unsigned bytes [n]; plain or packed by gzip.
//
//   const IdxArray images = read_idx("mnist", folder / "train-images-idx3-ubyte.gz");
//   const std::unique_ptr<Dataset> data = open_idx(settings, seed, "data");
//
// Layout: 0, 0, type (8 = unsigned byte), number of dimensions, each as big-endian u32, then the
// values, last dimension fastest. IDX names no clients: a file beside it may, for the partition natural;
// otherwise it is given, dirichlet or iid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

struct IdxArray {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> values;

  bool operator==(const IdxArray&) const = default;
};

IdxArray read_idx(std::string_view dataset, const std::filesystem::path& path);

// Reads folder / settings.path, where one file each ends in train-images-idx3-ubyte (or idx4) and
// train-labels-idx1-ubyte, and likewise with t10k or test instead of train; `.gz` may follow.
// Labels of the training part say how many classes there are; a test label beyond is a bad record.
// Partition natural: clients_train.i32 and clients_test.i32 there have a client's number, from 0, for
// each image (little-endian int32). Clients that have test images alone are scored and never asked.
std::unique_ptr<Dataset> open_idx(const DataSettings& settings, std::uint64_t seed,
                                  const std::filesystem::path& folder);

}  // namespace fedep
