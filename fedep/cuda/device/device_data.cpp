#include "fedep/cuda/device/device_data.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "fedep/cuda/device/parallel_for.h"
#include "fedep/data/image/pca.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

template <class T>
DeviceArray<T> uploaded(std::span<const T> values) {
  DeviceArray<T> array(values.size());
  array.upload(values);
  return array;
}

// Larger if it must be. True if it moved.
template <class T>
bool make_room(DeviceArray<T>& array, std::size_t size) {
  if (array.size() >= size) return false;
  array = DeviceArray<T>(size + size / 4);
  array.zero();
  return true;
}

class DeviceImages final : public DeviceData {
 public:
  DeviceImages(const RawImages& raw, bool augment)
      : pixels_(uploaded(raw.pixels)), labels_(uploaded(raw.labels)) {
    std::vector<std::uint32_t> images;
    for (const std::vector<std::uint32_t>& own : raw.clients) {
      first_.push_back(std::uint32_t(images.size()));
      images.insert(images.end(), own.begin(), own.end());
    }
    images_ = uploaded(std::span<const std::uint32_t>(images));
    store_.pixels = pixels_.data();
    store_.labels = labels_.data();
    store_.images = images_.data();
    if (!raw.numbers.empty()) {
      std::vector<std::uint32_t> numbers;
      for (const std::vector<std::uint32_t>& own : raw.numbers) {
        numbers.insert(numbers.end(), own.begin(), own.end());
      }
      numbers_ = uploaded(std::span<const std::uint32_t>(numbers));
      store_.numbers = numbers_.data();
    }
    store_.image_size = int(raw.labels.empty() ? 0 : raw.pixels.size() / raw.labels.size());
    if (raw.crop) {
      store_.side = int(raw.crop->side);
      store_.crop_side = int(raw.crop->crop_side);
      store_.channels = int(raw.crop->channels);
      store_.random_crops = raw.random_crops && augment;
    }
    if (raw.projection != nullptr) {
      panels_ = uploaded(raw.projection->panels());
      offset_ = uploaded(raw.projection->offset());
      store_.panels = panels_.data();
      store_.offset = offset_.data();
      store_.components = int(raw.projection->components());
    }
  }

  std::size_t prepare(const CohortOrder&) override { return 0; }
  void make_batch(const gpu::StepTables& tables, const std::uint32_t* first, float* features,
                  std::int32_t* labels) override {
    gpu::image_batch(tables, store_, first, features, labels, device_stream());
  }
  std::uint32_t first_example(std::size_t client) const override { return first_[client]; }

 private:
  DeviceArray<std::uint8_t> pixels_;
  DeviceArray<std::int32_t> labels_;
  DeviceArray<std::uint32_t> images_, numbers_;
  DeviceArray<float> panels_, offset_;
  std::vector<std::uint32_t> first_;
  gpu::ImageStore store_;
};

// All examples as floats, client after client.
class DeviceRows final : public DeviceData {
 public:
  explicit DeviceRows(const Dataset& data) {
    const std::size_t features = data.info().feature_count();
    std::size_t rows = 0;
    for (const auto& [id, examples] : data.clients()) {
      first_.push_back(std::uint32_t(rows));
      rows += examples;
    }
    std::vector<float> values(rows * features);
    std::vector<std::int32_t> labels(rows);
    parallel_for(first_.size(), [&](std::size_t client) {
      std::vector<std::uint32_t> all(data.clients()[client].second);
      std::iota(all.begin(), all.end(), 0u);
      Batch batch;
      data.train_batch(client, all, nullptr, batch);
      std::copy(batch.dense.begin(), batch.dense.end(),
                values.begin() + std::ptrdiff_t(first_[client] * features));
      std::copy(batch.labels.begin(), batch.labels.end(), labels.begin() + first_[client]);
    });
    rows_ = uploaded(std::span<const float>(values));
    labels_ = uploaded(std::span<const std::int32_t>(labels));
    store_ = {.rows = rows_.data(), .labels = labels_.data(), .features = int(features)};
  }

  std::size_t prepare(const CohortOrder&) override { return 0; }
  void make_batch(const gpu::StepTables& tables, const std::uint32_t* first, float* features,
                  std::int32_t* labels) override {
    gpu::row_batch(tables, store_, first, features, labels, device_stream());
  }
  std::uint32_t first_example(std::size_t client) const override { return first_[client]; }

 private:
  DeviceArray<float> rows_;
  DeviceArray<std::int32_t> labels_;
  std::vector<std::uint32_t> first_;
  gpu::RowStore store_;
};

// A schedule's batches made on the host, in its order.
class HostMadeBatches final : public DeviceData {
 public:
  HostMadeBatches(const Dataset& data, bool augment) : data_(data), augment_(augment) {}
  ~HostMadeBatches() override {
    pinned_free(pinned_);
    pinned_free(pinned_labels_);
  }
  HostMadeBatches(const HostMadeBatches&) = delete;
  HostMadeBatches& operator=(const HostMadeBatches&) = delete;

  std::size_t prepare(const CohortOrder& order) override {
    const std::size_t features = data_.info().feature_count();
    const std::size_t slots = order.counts.size() * order.rows;
    wait_for_device();  // it may still read what is replaced here
    if (slots > slots_) {
      pinned_free(std::exchange(pinned_, nullptr));
      pinned_free(std::exchange(pinned_labels_, nullptr));
      slots_ = slots;
      pinned_ = static_cast<float*>(pinned_allocate(slots * features * sizeof(float)));
      pinned_labels_ = static_cast<std::int32_t*>(pinned_allocate(slots * sizeof(std::int32_t)));
    }
    parallel_for(order.counts.size(), [&](std::size_t i) {
      const std::size_t c = i % order.clients;
      if (order.counts[i] == 0) return;
      Address address = order.augment[c];
      address.step = order.own_steps[i];
      Batch batch;
      data_.train_batch(order.client[c],
                        {order.examples.data() + i * order.rows, std::size_t(order.counts[i])},
                        augment_ ? &address : nullptr, batch);
      std::copy(batch.dense.begin(), batch.dense.end(), pinned_ + i * order.rows * features);
      std::copy(batch.labels.begin(), batch.labels.end(), pinned_labels_ + i * order.rows);
    });
    if (make_room(rows_, slots * features) | make_room(labels_, slots)) ++moves_;
    copy_to_device(rows_.data(), pinned_, slots * features * sizeof(float));
    copy_to_device(labels_.data(), pinned_labels_, slots * sizeof(std::int32_t));
    return moves_;
  }
  void make_batch(const gpu::StepTables& tables, const std::uint32_t*, float* features,
                  std::int32_t* labels) override {
    const gpu::RowStore store{.rows = rows_.data(),
                              .labels = labels_.data(),
                              .features = int(data_.info().feature_count())};
    gpu::row_batch(tables, store, nullptr, features, labels, device_stream());
  }
  std::uint32_t first_example(std::size_t) const override { return 0; }

 private:
  const Dataset& data_;
  bool augment_;
  std::size_t slots_ = 0, moves_ = 0;
  float* pinned_ = nullptr;
  std::int32_t* pinned_labels_ = nullptr;
  DeviceArray<float> rows_;
  DeviceArray<std::int32_t> labels_;
};

}  // namespace

StreamAddress stream_address(const Address& address) {
  const PhiloxKey key = Stream(address).key();
  return {.key0 = key[0], .key1 = key[1], .step = address.step, .round = address.round};
}

std::unique_ptr<DeviceData> upload_training_data(const Dataset& data, bool augment) {
  const DatasetInfo& info = data.info();
  if (info.sparse) {
    throw InputError(
        fmt::format("data {}: features must be dense for --device cuda, but are sparse: this data "
                    "set runs on the CPU only",
                    info.name));
  }
  if (info.target != TargetKind::label) {
    throw InputError(
        fmt::format("data {}: targets must be labels for --device cuda, but are not: this data set "
                    "runs on the CPU only",
                    info.name));
  }
  if (const std::optional<RawImages> raw = data.raw_images()) {
    return std::make_unique<DeviceImages>(*raw, augment);
  }
  std::size_t examples = 0;
  for (const auto& [id, count] : data.clients()) examples += count;
  const std::size_t bytes = examples * info.feature_count() * sizeof(float);
  if (augment || bytes > device_memory_free() / 8) {
    return std::make_unique<HostMadeBatches>(data, augment);
  }
  return std::make_unique<DeviceRows>(data);
}

CohortBatches::CohortBatches(DeviceData& data, std::size_t clients, std::size_t rows,
                             std::size_t features)
    : data_(data),
      clients_(clients),
      rows_(rows),
      features_(clients * rows * features),
      labels_(clients * rows),
      state_(2),
      count_(clients),
      first_(clients),
      augment_(clients),
      dropout_(clients) {
  features_.zero();  // finite also where no example ever was
  labels_.zero();
  count_.zero();
}

bool CohortBatches::load(const CohortOrder& order) {
  std::vector<std::uint32_t> first;
  std::vector<StreamAddress> augment, dropout;
  for (std::size_t c = 0; c < clients_; ++c) {
    first.push_back(data_.first_example(order.client[c]));
    augment.push_back(stream_address(order.augment[c]));
    dropout.push_back(stream_address(order.dropout[c]));
  }
  const bool moved = make_room(examples_, order.examples.size()) |
                     make_room(counts_table_, order.counts.size()) |
                     make_room(own_steps_, order.own_steps.size());
  examples_.upload(order.examples);
  counts_table_.upload(order.counts);
  own_steps_.upload(order.own_steps);
  first_.upload(first);
  augment_.upload(augment);
  dropout_.upload(dropout);
  state_.zero();
  const std::size_t moves = data_.prepare(order);
  return std::exchange(data_moves_, moves) != moves || moved;
}

gpu::StepTables CohortBatches::tables() {
  return {.clients = int(clients_),
          .rows = int(rows_),
          .examples = examples_.data(),
          .counts = counts_table_.data(),
          .own_steps = own_steps_.data(),
          .next = state_.data(),
          .step = state_.data() + 1,
          .count = count_.data(),
          .augment = augment_.data(),
          .dropout = dropout_.data()};
}

void CohortBatches::go_to(std::size_t step) {
  state_.upload(std::vector<std::int32_t>{std::int32_t(step), 0});
}

void CohortBatches::next() {
  const gpu::StepTables now = tables();
  gpu::begin_step(now, device_stream());
  data_.make_batch(now, first_.data(), features_.data(), labels_.data());
}

CohortBatch CohortBatches::batch() const {
  return {.clients = clients_,
          .rows = rows_,
          .features = features_.data(),
          .labels = labels_.data(),
          .counts = count_.data(),
          .dropout = dropout_.data()};
}

}  // namespace fedep
