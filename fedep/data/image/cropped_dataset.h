// Images kept as bytes and given out as standardised crops, random in training where that is asked
// for, else the centre; or as projections of such crops.
//
//   CroppedImages images{.crop = kCifarCrop, .projection = nullptr};
//   …
//   return cropped_dataset(info, std::move(images), {test_clients, batch_rows(test)}, augment);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fedep/data/dataset.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/data/image/pca.h"
#include "fedep/data/memory_dataset.h"

namespace fedep {

// Training images, client after client.
struct CroppedImages {
  CropShape crop = kCifarCrop;
  std::vector<std::uint8_t> pixels = {};  // [images, side, side, channels]
  std::vector<std::int32_t> labels = {};  // [images]
  ClientRows clients = {};
  std::shared_ptr<const PcaProjection> projection = {};  // shared by shards; null: none
};

// Held-out rows come ready. `augment`: crops are random where an address is given. Throws
// InputError where sizes do not fit.
std::unique_ptr<Dataset> cropped_dataset(DatasetInfo info, CroppedImages train, Part test,
                                         bool augment);

}  // namespace fedep
