#include "fedep/data/image/image_augment.h"

#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

std::vector<std::uint8_t> random_image(std::uint64_t seed) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<std::uint8_t> image(kCifarCrop.image_size());
  for (auto& x : image) x = std::uint8_t(stream.bits());
  return image;
}

std::vector<float> cropped(const std::vector<std::uint8_t>& image, const Crop& crop) {
  std::vector<float> out(kCifarCrop.crop_size());
  standardised_crop(kCifarCrop, image, crop, out);
  return out;
}

TEST(StandardisedCrop, HasMeanZeroAndVarianceOne) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto out = cropped(random_image(seed), {.top = seed % 9, .left = 8 - seed % 9});
    double sum = 0, squares = 0;
    for (const float x : out) {
      sum += double(x);
      squares += double(x) * double(x);
    }
    EXPECT_NEAR(sum / 1728, 0, 1e-6);
    EXPECT_NEAR(squares / 1728, 1, 1e-6);
  }
}

TEST(StandardisedCrop, IsThePlainFormula) {
  const auto image = random_image(3);
  const Crop crop{.top = 2, .left = 7, .flip = true};
  const auto out = cropped(image, crop);
  const auto pixel = [&](std::size_t y, std::size_t x, std::size_t c) {
    return double(image[((crop.top + y) * 32 + crop.left + (23 - x)) * 3 + c]);
  };
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < 1728; ++i) mean += pixel(i / 72, i / 3 % 24, i % 3) / 1728;
  for (std::size_t i = 0; i < 1728; ++i) {
    variance += std::pow(pixel(i / 72, i / 3 % 24, i % 3) - mean, 2) / 1728;
  }
  for (std::size_t i = 0; i < 1728; ++i) {
    const double expected = (pixel(i / 72, i / 3 % 24, i % 3) - mean) / std::sqrt(variance);
    ASSERT_NEAR(double(out[i]), expected, 2e-6) << i;
  }
}

TEST(StandardisedCrop, AFlipMirrorsEveryRow) {
  const auto image = random_image(4);
  const auto plain = cropped(image, {.top = 1, .left = 5});
  const auto flipped = cropped(image, {.top = 1, .left = 5, .flip = true});
  for (std::size_t y = 0; y < 24; ++y) {
    for (std::size_t x = 0; x < 24; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(flipped[(y * 24 + x) * 3 + c], plain[(y * 24 + 23 - x) * 3 + c]);
      }
    }
  }
}

TEST(StandardisedCrop, AConstantImageIsZero) {
  for (const float x : cropped(std::vector<std::uint8_t>(3072, 200), centre_crop(kCifarCrop))) {
    EXPECT_EQ(x, 0.0f);
  }
}

TEST(StandardisedCrop, TheDeviationIsAtLeastOneOverRootN) {
  // One value differs by one: its deviation, sqrt(1727)/1728, is just below 1/sqrt(1728).
  std::vector<std::uint8_t> image(3072, 100);
  image[(4 * 32 + 4) * 3] = 101;
  const auto out = cropped(image, centre_crop(kCifarCrop));
  EXPECT_NEAR(double(out[0]), (1.0 - 1.0 / 1728) * std::sqrt(1728.0), 1e-4);
}

TEST(StandardisedCrop, ACropOutsideOrOfAnotherSizeIsRefused) {
  const auto image = random_image(1);
  EXPECT_THROW(cropped(image, {.top = 9}), InputError);
  EXPECT_THROW(cropped(image, {.left = 9}), InputError);
  EXPECT_THROW(cropped(std::vector<std::uint8_t>(3071), {}), InputError);
}

TEST(RandomCrop, OffsetsAndFlipsAreUniform) {
  const Stream stream({.seed = 7, .purpose = Purpose::augment});
  std::map<std::pair<std::size_t, std::size_t>, int> offsets;
  int flips = 0;
  constexpr int kDraws = 81000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Crop crop = random_crop(kCifarCrop, stream, i);
    ++offsets[{crop.top, crop.left}];
    flips += crop.flip;
  }
  EXPECT_EQ(offsets.size(), 81u);  // 0..8 each way
  double chi_square = 0;
  for (const auto& [offset, count] : offsets) {
    EXPECT_LE(offset.first, 8u);
    EXPECT_LE(offset.second, 8u);
    chi_square += std::pow(count - 1000.0, 2) / 1000.0;
  }
  EXPECT_LT(chi_square, 80 + 5 * std::sqrt(160.0));
  EXPECT_NEAR(flips, kDraws / 2, 5 * std::sqrt(kDraws) / 2);
}

TEST(RandomCrop, DependsOnAddressAndExampleOnly) {
  const Address address{.seed = 7, .purpose = Purpose::augment, .round = 3, .client = 9};
  Stream used(address);
  used.normal();
  EXPECT_EQ(random_crop(kCifarCrop, used, 5), random_crop(kCifarCrop, Stream(address), 5));
  int same = 0;
  for (std::uint32_t step = 1; step < 200; ++step) {
    Address other = address;
    other.step = step;
    same += random_crop(kCifarCrop, Stream(other), 5) == random_crop(kCifarCrop, used, 5);
  }
  EXPECT_LT(same, 10);  // one in 162 by chance
}

TEST(CentreCrop, LeavesFourPixelsOnEachSide) {
  EXPECT_EQ(centre_crop(kCifarCrop), (Crop{.top = 4, .left = 4, .flip = false}));
}

TEST(Interleave, PutsTheColoursOfAPixelTogether) {
  std::vector<std::uint8_t> planar(3072), out(3072);
  for (std::size_t i = 0; i < 3072; ++i) planar[i] = std::uint8_t(i / 1024 * 80 + i % 1024 % 77);
  interleave(kCifarCrop, planar, out);
  for (std::size_t i = 0; i < 1024; ++i) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(out[3 * i + c], planar[1024 * c + i]);
  }
}

}  // namespace
}  // namespace fedep
