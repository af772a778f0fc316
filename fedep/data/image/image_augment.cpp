#include "fedep/data/image/image_augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr std::size_t kMaxRow = 1024;  // bytes of a crop's row

// A number below `bound` from 32 random bits.
std::size_t scaled(std::uint32_t word, std::size_t bound) {
  return std::size_t(std::uint64_t(word) * bound >> 32);
}

// Loops over plain arrays with constant strides, so that they become vector instructions.
void add_row(const std::uint8_t* row, std::size_t n, std::uint32_t& sum, std::uint32_t& squares) {
  std::uint32_t row_sum = 0;
  std::uint32_t row_squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t x = row[i];
    row_sum += x;
    row_squares += x * x;
  }
  sum += row_sum;
  squares += row_squares;
}

void standardise_row(const std::uint8_t* row, std::size_t n, float mean, float deviation,
                     float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = (float(row[i]) - mean) / deviation;
}

void reverse_pixels(const std::uint8_t* row, std::size_t n, std::size_t channels,
                    std::uint8_t* out) {
  for (std::size_t i = 0; i < n; i += channels) {
    for (std::size_t c = 0; c < channels; ++c) out[n - channels - i + c] = row[i + c];
  }
}

}  // namespace

Crop centre_crop(const CropShape& shape) {
  const std::size_t margin = (shape.side - shape.crop_side) / 2;
  return {.top = margin, .left = margin, .flip = false};
}

Crop random_crop(const CropShape& shape, const Stream& stream, std::uint32_t example) {
  const PhiloxCounter words = stream.block(example);
  const std::size_t offsets = shape.side - shape.crop_side + 1;
  return {.top = scaled(words[0], offsets),
          .left = scaled(words[1], offsets),
          .flip = (words[2] >> 31) != 0};
}

void standardised_crop(const CropShape& shape, std::span<const std::uint8_t> image,
                       const Crop& crop, std::span<float> out) {
  constexpr const char* kName = "standardised_crop";
  check_same_size(kName, "image", shape.image_size(), image.size());
  check_same_size(kName, "output", shape.crop_size(), out.size());
  const std::size_t row = shape.crop_side * shape.channels;
  check_in(kName, "bytes of a row", double(row), 1, double(kMaxRow));
  check_in(kName, "bottom of the crop", double(crop.top + shape.crop_side), 1, double(shape.side));
  check_in(kName, "right of the crop", double(crop.left + shape.crop_side), 1, double(shape.side));

  const std::uint8_t* first = image.data() + (crop.top * shape.side + crop.left) * shape.channels;
  const std::size_t stride = shape.side * shape.channels;
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (std::size_t y = 0; y < shape.crop_side; ++y) {
    std::uint32_t row_sum = 0;
    std::uint32_t row_squares = 0;  // at most 1024 * 255^2 < 2^27
    add_row(first + y * stride, row, row_sum, row_squares);
    sum += row_sum;
    squares += row_squares;
  }
  const double n = double(shape.crop_size());
  // n^2 times the variance, exact: no cancellation however bright the image.
  const std::uint64_t spread = shape.crop_size() * squares - sum * sum;
  const float mean = float(double(sum) / n);
  const float deviation = float(std::max(std::sqrt(double(spread)) / n, 1.0 / std::sqrt(n)));

  std::array<std::uint8_t, kMaxRow> reversed;
  for (std::size_t y = 0; y < shape.crop_side; ++y) {
    const std::uint8_t* from = first + y * stride;
    if (crop.flip) {
      reverse_pixels(from, row, shape.channels, reversed.data());
      from = reversed.data();
    }
    standardise_row(from, row, mean, deviation, out.data() + y * row);
  }
}

void interleave(const CropShape& shape, std::span<const std::uint8_t> planar,
                std::span<std::uint8_t> out) {
  const std::size_t plane = shape.side * shape.side;
  check_same_size("interleave", "image", shape.image_size(), planar.size());
  check_same_size("interleave", "output", shape.image_size(), out.size());
  for (std::size_t c = 0; c < shape.channels; ++c) {
    for (std::size_t i = 0; i < plane; ++i) out[i * shape.channels + c] = planar[c * plane + i];
  }
}

}  // namespace fedep
