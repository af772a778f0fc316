// One client's part of a data set in a file of its own, which a site of a federation can hold
// alone: its training and held-out examples, ready for a model, and what a model is told of the
// data.
//
//   const std::vector<std::byte> bytes = shard_bytes(shard);
//   const Shard shard = parse_shard(bytes, "shards/000007-ward-C.shard");
//
// The bytes are a record (message/record.h): "header" (JSON: format, version, client, counts),
// "about" (JSON: what the data are, the same for all their clients), and the arrays of "train." and
// "test.": dense (numbers), bytes (of images, over 255), sparse.*, labels, tags.*, reals, log_exposure; or
// train.images and train.labels where random crops are cut from them; train.groups where examples
// belong together (Dataset::groups). Every byte is under a checksum.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/data/image/pca.h"

namespace fedep {

// Images of which a batch takes crops.
struct ShardImages {
  CropShape crop = kCifarCrop;
  std::vector<std::uint8_t> pixels = {};
  std::vector<std::int32_t> labels = {};
  std::shared_ptr<const PcaProjection> projection = {};  // of the crops; null: none
};

struct Shard {
  std::string client = {};
  DatasetInfo info = {};
  std::string about = {};  // about_data(info), which is made once for many shards
  Batch train = {};
  std::optional<ShardImages> images = {};  // instead of train
  Batch test = {};
  std::vector<std::int32_t> groups = {};  // of training examples that belong together; empty: none

  std::size_t train_size() const { return images ? images->labels.size() : train.size; }
};

// Throws InputError for numbers that are not finite.
std::vector<std::byte> shard_bytes(const Shard& shard);
// Throws InputError, naming the source, for whatever shard_bytes does not write. `known`: another
// shard of these data, so that names of ten thousand words are not read again and again.
Shard parse_shard(std::span<const std::byte> bytes, const std::string& source,
                  const Shard* known = nullptr);

// Throws InputError for names that are not UTF-8.
std::string about_data(const DatasetInfo& info);

}  // namespace fedep
