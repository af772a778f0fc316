#include "fedep/data/image/image_file.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/idx.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/data/image/pca.h"
#include "fedep/message/check.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLabels = 2;  // of a CIFAR-100 record, before its pixels

}  // namespace

Batch read_cifar_records(const fs::path& file, const DatasetInfo& data,
                         const PcaProjection* projection) {
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
  if (projection != nullptr) {
    std::vector<float> projected(out.size * projection->components());
    (*projection)(out.dense, projected);
    out.dense = std::move(projected);
  }
  check_same_size("read_cifar_records", "features", data.feature_count(),
                  out.dense.size() / out.size);
  return out;
}

Batch read_byte_images(const fs::path& file, const DatasetInfo& data, const PcaProjection*) {
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

}  // namespace fedep
