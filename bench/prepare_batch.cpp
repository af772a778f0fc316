#include "bench/prepare_batch.h"

#include <vector>

#include "fedep/data/image/image_augment.h"
#include "fedep/data/image/pca.h"

namespace fedep {
namespace {

constexpr std::size_t kImages = 20;
const std::size_t kFeatures = kCifarCrop.crop_size();
constexpr std::size_t kComponents = 100;

Pca made_up_pca() {
  return {.features = kFeatures,
          .components = kComponents,
          .mean = std::vector<float>(kFeatures, 0.1f),
          .basis = std::vector<float>(kFeatures * kComponents, 0.01f),
          .variances = std::vector<float>(kComponents, 1.0f)};
}

}  // namespace

struct Preparation::Images {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(kImages * kCifarCrop.image_size());
  std::vector<float> crops = std::vector<float>(kImages * kFeatures);
  std::vector<float> projected = std::vector<float>(kImages * kComponents);
  PcaProjection project{made_up_pca()};
};

Preparation::Preparation() : images_(std::make_unique<Images>()) {
  for (std::size_t i = 0; i < images_->pixels.size(); ++i) {
    images_->pixels[i] = std::uint8_t(i * 37 + i / 251);
  }
}
Preparation::~Preparation() = default;

void Preparation::augment() const {
  const Stream stream({.seed = 1, .purpose = Purpose::augment});
  const std::size_t size = kCifarCrop.image_size();
  for (std::size_t i = 0; i < kImages; ++i) {
    standardised_crop(kCifarCrop, std::span(images_->pixels).subspan(i * size, size),
                      random_crop(kCifarCrop, stream, std::uint32_t(i)),
                      std::span(images_->crops).subspan(i * kFeatures, kFeatures));
  }
}

void Preparation::project() const { images_->project(images_->crops, images_->projected); }

}  // namespace fedep
