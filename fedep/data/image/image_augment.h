// Crops, flips and per-image standardisation, as the paper's CIFAR-100 runs have them.
//
//   const Crop crop = random_crop(kCifarCrop, Stream(address), example);   // or centre_crop(kCifarCrop)
//   standardised_crop(kCifarCrop, pixels, crop, out);
//
// A random crop is a pure function of the stream's address and the example's number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fedep/random/stream.h"

namespace fedep {

struct CropShape {
  std::size_t side = 32;       // of the stored image, [side, side, channels]
  std::size_t crop_side = 24;  // of what a model sees
  std::size_t channels = 3;

  std::size_t image_size() const { return side * side * channels; }
  std::size_t crop_size() const { return crop_side * crop_side * channels; }
};
inline constexpr CropShape kCifarCrop{};

struct Crop {
  std::size_t top = 0;
  std::size_t left = 0;
  bool flip = false;  // left to right

  bool operator==(const Crop&) const = default;
};

Crop centre_crop(const CropShape& shape);

// Offsets 0 .. side - crop_side equally likely (to 2^-32), a flip every other time. Uses block
// `example` of the stream.
Crop random_crop(const CropShape& shape, const Stream& stream, std::uint32_t example);

// (x - mean) / max(std, 1/sqrt(n)) over all n values of the crop, population std; sums are exact
// integers. `image` is [side, side, channels], `out` [crop_side, crop_side, channels].
void standardised_crop(const CropShape& shape, std::span<const std::uint8_t> image,
                       const Crop& crop, std::span<float> out);

// [channels, side, side] -> [side, side, channels]
void interleave(const CropShape& shape, std::span<const std::uint8_t> planar,
                std::span<std::uint8_t> out);

}  // namespace fedep
