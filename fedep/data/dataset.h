// A federated data set: who the clients are and what each one's examples look like. Everything is
// read and checked when it is opened; afterwards batches are gathered by index, from any thread.
//
//   const std::unique_ptr<Dataset> data = open_dataset(recipe.data, seed, data_folder);
//   Batch batch;
//   data->train_batch(client, indices, &augmentation, batch);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/random/stream.h"

namespace fedep {

struct TableFeatures;  // table/table_features.h
struct TableAudit;     // table/audit.h

struct DatasetInfo {
  std::string name;
  std::vector<std::int64_t> features;  // shape of one example: {24, 24, 3}, or {10000}
  bool sparse = false;                 // features come as Batch::sparse
  TargetKind target = TargetKind::label;
  std::size_t outputs = 0;                 // classes or tags; else 1
  bool has_exposure = false;               // of counts: Batch::log_exposure is there
  std::size_t skipped_records = 0;         // bad records left out while reading
  std::string first_skipped = {};          // of tables: the first one's line, and why
  std::vector<std::string> feature_names;  // of tables, else empty
  std::vector<std::string> output_names;   // classes or tags, where they have names
  // Of tables: how a row becomes features. Shared by the copies of this description.
  std::shared_ptr<const TableFeatures> table = {};
  // Of tables that were read: what is in their columns, and what looks wrong there; else null.
  std::shared_ptr<const TableAudit> audit = {};

  std::size_t feature_count() const {
    std::size_t n = 1;
    for (const std::int64_t extent : features) n *= std::size_t(extent);
    return n;
  }
};

class PcaProjection;

// Training images as they are stored, for somebody who makes the batches of train_batch()
// elsewhere: on a GPU. It looks into the data set, which must outlive it.
struct RawImages {
  std::span<const std::uint8_t> pixels;  // [images, features], or [images, side, side, channels]
  std::span<const std::int32_t> labels;  // [images]
  std::span<const std::vector<std::uint32_t>> clients;  // their images, in the order of examples
  // What their crops are drawn by, shaped like `clients`; empty: the examples' own numbers.
  std::span<const std::vector<std::uint32_t>> numbers = {};
  std::optional<CropShape> crop;  // standardised crops; without: whole images, bytes over 255
  bool random_crops = false;      // where there is an address, else the centre
  const PcaProjection* projection = nullptr;  // of the crops; null: none
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const DatasetInfo& info() const = 0;

  // Training clients: ids and numbers of examples, in a fixed order.
  virtual const std::vector<std::pair<std::string, std::size_t>>& clients() const = 0;

  // Numbers of its training examples, the same where examples belong together (a patient's): those
  // stay together in every split. Empty: each on its own.
  virtual std::span<const std::uint32_t> groups(std::size_t /*client*/) const { return {}; }

  // Fills `out` with these examples of a client, in this order. `augmentation` null: as evaluation
  // sees them (centre crop). Else random crops and flips: a pure function of the address and the
  // example's index, whatever the batch around it.
  virtual void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                           const Address* augmentation, Batch& out) const = 0;

  // Examples are made up whenever somebody asks for them, and there may be more of them than anybody
  // could look at: those of a few clients stand for all.
  virtual bool made_when_asked() const { return false; }

  // None, if examples are not images kept as bytes.
  virtual std::optional<RawImages> raw_images() const { return std::nullopt; }

  // Held-out examples [begin, end), clients one after another; which client each belongs to is an
  // index into test_clients().
  virtual std::size_t test_size() const = 0;
  virtual void test_batch(std::size_t begin, std::size_t end, Batch& out) const = 0;
  virtual const std::vector<std::string>& test_clients() const = 0;
  virtual std::size_t test_client(std::size_t example) const = 0;

  // Examples that were taken out of training for a temperature, as the test set of another data
  // set, which lives as long as this one; null: none were.
  virtual const Dataset* calibration() const { return nullptr; }

  // Held-out examples of classes that were taken out of training, without labels, as the test set of
  // another data set, which lives as long as this one; null: none were.
  virtual const Dataset* unlike() const { return nullptr; }
};

}  // namespace fedep
