#include "fedep/data/image/image_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/idx.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kByteImages{"idx", "emnist62", "femnist", "leaf"};
constexpr std::size_t kLabels = 2;  // of a CIFAR-100 record, before its pixels

Batch read_cifar(const fs::path& file, const DatasetInfo& data) {
  const std::vector<std::uint8_t> bytes = read_data_file(data.name, file);
  const std::size_t record = kLabels + kCifarCrop.image_size();
  if (bytes.empty() || bytes.size() % record != 0) {
    throw InputError(fmt::format("{}: must be CIFAR-100 records of {} bytes, but has {} bytes",
                                 file.string(), record, bytes.size()));
  }
  Batch out;
  out.size = bytes.size() / record;
  out.dense.resize(out.size * kCifarCrop.crop_size());
  std::vector<std::uint8_t> image(kCifarCrop.image_size());
  for (std::size_t i = 0; i < out.size; ++i) {
    interleave(kCifarCrop, {bytes.data() + i * record + kLabels, image.size()}, image);
    standardised_crop(
        kCifarCrop, image, centre_crop(kCifarCrop),
        std::span(out.dense).subspan(i * kCifarCrop.crop_size(), kCifarCrop.crop_size()));
  }
  return out;
}

Batch read_bytes(const fs::path& file, const DatasetInfo& data) {
  const IdxArray images = read_idx(data.name, file);
  std::vector<std::int64_t> shape(images.dimensions.begin() + 1, images.dimensions.end());
  if (shape.size() == 2) shape.push_back(1);
  if (shape != data.features || images.dimensions[0] == 0) {
    throw InputError(fmt::format("{}: must have images of [{}], as {} has, but is of shape [{}]",
                                 file.string(), fmt::join(data.features, ", "), data.name,
                                 fmt::join(images.dimensions, ", ")));
  }
  Batch out;
  out.size = images.dimensions[0];
  out.dense.reserve(images.values.size());
  for (const std::uint8_t pixel : images.values) out.dense.push_back(float(pixel) / 255.0f);
  return out;
}

}  // namespace

Batch read_images(const fs::path& file, const DatasetInfo& data) {
  if (data.name == "cifar100") return read_cifar(file, data);
  if (std::find(kByteImages.begin(), kByteImages.end(), data.name) == kByteImages.end()) {
    throw InputError(
        fmt::format("predict: data must be a table, cifar100, {}, but are {}, for which no file "
                    "can be read",
                    fmt::join(kByteImages, ", "), data.name));
  }
  return read_bytes(file, data);
}

}  // namespace fedep
