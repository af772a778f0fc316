// Batches made on the GPU are those of Dataset::train_batch(), in every bit; so are normals.
#include "fedep/cuda/device/device_data.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "fedep/cuda/device/coordinates.h"
#include "fedep/cuda/round/fisher_kernels.h"
#include "fedep/data/calibration_rows.h"
#include "fedep/data/image/image_dataset.h"
#include "fedep/data/image/pca.h"
#include "fedep/data/validation.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 3, kRows = 4;
constexpr CropShape kShape{.side = 11, .crop_side = 8, .channels = 3};

std::vector<std::uint8_t> random_bytes(std::size_t size) {
  Stream stream({.seed = 4});
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& x : bytes) x = std::uint8_t(stream.bits());
  return bytes;
}

// Images of three clients that are cropped as CIFAR-100's are, projected if so asked.
class CroppedImages final : public Dataset {
 public:
  explicit CroppedImages(bool project, bool raw) : raw_(raw) {
    info_.name = "cropped";
    info_.features = {8, 8, 3};
    info_.outputs = 5;
    for (std::size_t i = 0; i < 30; ++i) labels_.push_back(std::int32_t(i % 5));
    std::fill(pixels_.begin(), pixels_.begin() + kShape.image_size(), std::uint8_t(77));  // flat
    if (project) {
      Pca pca{.features = kShape.crop_size(),
              .components = 21,
              .mean = {},
              .basis = {},
              .variances = {}};
      pca.mean.resize(pca.features);
      pca.basis.resize(pca.features * pca.components);
      pca.variances.resize(pca.components);
      fill_normal({.seed = 5}, pca.mean);
      fill_normal({.seed = 6}, pca.basis);
      projection_ = std::make_unique<PcaProjection>(pca);
      info_.features = {21};
    }
  }

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override { return ids_; }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    out = {};
    out.size = examples.size();
    for (const std::uint32_t example : examples) {
      const std::uint32_t image = own_[client][example];
      const Crop crop = augmentation != nullptr
                            ? random_crop(kShape, Stream(*augmentation), example)
                            : centre_crop(kShape);
      std::vector<float> values(kShape.crop_size());
      standardised_crop(
          kShape, std::span(pixels_).subspan(image * kShape.image_size(), kShape.image_size()),
          crop, values);
      if (projection_) {
        std::vector<float> projected(projection_->components());
        (*projection_)(values, projected);
        values = projected;
      }
      out.dense.insert(out.dense.end(), values.begin(), values.end());
      out.labels.push_back(labels_[image]);
    }
  }
  std::optional<RawImages> raw_images() const override {
    if (!raw_) return std::nullopt;
    return RawImages{.pixels = pixels_,
                     .labels = labels_,
                     .clients = own_,
                     .crop = kShape,
                     .random_crops = true,
                     .projection = projection_.get()};
  }
  std::size_t test_size() const override { return 0; }
  void test_batch(std::size_t, std::size_t, Batch&) const override {}
  const std::vector<std::string>& test_clients() const override { return none_; }
  std::size_t test_client(std::size_t) const override { return 0; }

 private:
  bool raw_;
  DatasetInfo info_;
  std::vector<std::uint8_t> pixels_ = random_bytes(30 * kShape.image_size());
  std::vector<std::int32_t> labels_;
  std::vector<std::pair<std::string, std::size_t>> ids_{{"a", 9}, {"b", 6}, {"c", 15}};
  std::vector<std::vector<std::uint32_t>> own_{
      {0, 3, 6, 9, 12, 15, 18, 21, 24},
      {29, 2, 27, 5, 8, 11},
      {1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 14, 17, 20, 23, 26}};
  std::vector<std::string> none_;
  std::unique_ptr<PcaProjection> projection_;
};

std::unique_ptr<Dataset> whole_images() {
  ImageTask task;
  task.info.name = "whole";
  task.info.features = {4, 5, 1};
  task.info.outputs = 3;
  const std::vector<std::uint8_t> bytes = random_bytes(30 * 20);
  for (std::size_t i = 0; i < 30; ++i) {
    add_image(task.train, std::string(1, char('a' + i % 3)), std::span(bytes).subspan(i * 20, 20),
              std::int32_t(i % 3));
  }
  return make_image_dataset(std::move(task), {.name = "whole"}, 1, "");
}

// Three steps; the second client rests in the last one.
CohortOrder order_of(std::uint32_t first_step, std::uint32_t examples) {
  CohortOrder order;
  order.clients = kClients;
  order.rows = kRows;
  order.client = {2, 0, 1};
  for (std::uint32_t step = 0; step < 3; ++step) {
    for (std::uint32_t c = 0; c < kClients; ++c) {
      order.counts.push_back(step == 2 && c == 1 ? 0 : std::int32_t(kRows - (step + c) % 2));
      order.own_steps.push_back(first_step + 10 * c + step);
      for (std::uint32_t row = 0; row < kRows; ++row) {
        order.examples.push_back((5 * step + 3 * c + row) % examples);
      }
    }
  }
  for (std::uint64_t c = 0; c < kClients; ++c) {
    order.augment.push_back({.seed = 8, .purpose = Purpose::augment, .round = 7, .client = c});
    order.dropout.push_back({.seed = 8, .purpose = Purpose::dropout, .round = 7, .client = c});
  }
  return order;
}

class DeviceDataTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }

  // Of the first `examples` of every client.
  void expect_batches_of_the_host(const Dataset& data, bool augment, std::uint32_t examples = 6) {
    const std::size_t features = data.info().feature_count();
    const auto on_device = upload_training_data(data, augment);
    CohortBatches batches(*on_device, kClients, kRows, features);
    for (const std::uint32_t first_step : {0u, 1000u}) {  // two rounds
      const CohortOrder order = order_of(first_step, examples);
      batches.load(order);
      for (std::size_t step = 0; step < 3; ++step) {
        batches.next();
        const CohortBatch batch = batches.batch();
        std::vector<float> dense(kClients * kRows * features);
        std::vector<std::int32_t> labels(kClients * kRows), counts(kClients);
        std::vector<StreamAddress> dropout(kClients);
        copy_to_host(dense.data(), batch.features, dense.size() * sizeof(float));
        copy_to_host(labels.data(), batch.labels, labels.size() * sizeof(std::int32_t));
        copy_to_host(counts.data(), batch.counts, counts.size() * sizeof(std::int32_t));
        copy_to_host(dropout.data(), batch.dropout, dropout.size() * sizeof(StreamAddress));
        for (std::size_t c = 0; c < kClients; ++c) {
          const std::size_t i = step * kClients + c;
          ASSERT_EQ(counts[c], order.counts[i]);
          EXPECT_EQ(dropout[c].step, order.own_steps[i]);
          EXPECT_EQ(dropout[c].round, 7u);
          Address address = order.augment[c];
          address.step = order.own_steps[i];
          Batch host;
          data.train_batch(order.client[c],
                           {order.examples.data() + i * kRows, std::size_t(counts[c])},
                           augment ? &address : nullptr, host);
          for (std::size_t row = 0; row < host.size; ++row) {
            EXPECT_EQ(labels[c * kRows + row], host.labels[row]);
            for (std::size_t k = 0; k < features; ++k) {
              ASSERT_EQ(dense[(c * kRows + row) * features + k], host.dense[row * features + k])
                  << "step " << step << " client " << c << " row " << row << " feature " << k;
            }
          }
        }
      }
    }
  }
};

TEST_F(DeviceDataTest, CropsAreTheHostsInEveryBit) {
  expect_batches_of_the_host(CroppedImages(false, true), true);
  expect_batches_of_the_host(CroppedImages(false, true), false);
}

// Rows taken out of training leave other numbers, by which crops are not drawn.
TEST_F(DeviceDataTest, SoAreThoseOfSomeRows) {
  const auto some = without_calibration_rows(
      validation_dataset(std::make_unique<CroppedImages>(false, true), 0.2), 0.2);
  expect_batches_of_the_host(*some, true, 3);
}

TEST_F(DeviceDataTest, SoAreTheirProjections) {
  expect_batches_of_the_host(CroppedImages(true, true), true);
  expect_batches_of_the_host(CroppedImages(true, true), false);
}

TEST_F(DeviceDataTest, SoAreWholeImages) { expect_batches_of_the_host(*whole_images(), true); }

TEST_F(DeviceDataTest, SoAreRowsThatWereUploadedOnceAndBatchesMadeByTheHost) {
  expect_batches_of_the_host(CroppedImages(false, false), false);
  expect_batches_of_the_host(CroppedImages(false, false), true);
}

TEST_F(DeviceDataTest, NormalsAreTheHostsInEveryBit) {
  const Address address{
      .seed = 3, .purpose = Purpose::posterior, .round = 9, .client = 12, .step = 5};
  for (const std::size_t size : {1u, 6u, 100003u}) {
    std::vector<float> host(size);
    fill_normal(address, host);
    DeviceArray<float> device(size);
    gpu::fill_normals(stream_address(address), size, device.data(), device_stream());
    EXPECT_EQ(device.download(), host);
  }
}

TEST(UploadTrainingData, RefusesWhatRunsOnTheCpuOnly) {
  class Sparse final : public Dataset {
   public:
    DatasetInfo info_;
    std::vector<std::pair<std::string, std::size_t>> clients_;
    std::vector<std::string> tests_;
    const DatasetInfo& info() const override { return info_; }
    const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
      return clients_;
    }
    void train_batch(std::size_t, std::span<const std::uint32_t>, const Address*,
                     Batch&) const override {}
    std::size_t test_size() const override { return 0; }
    void test_batch(std::size_t, std::size_t, Batch&) const override {}
    const std::vector<std::string>& test_clients() const override { return tests_; }
    std::size_t test_client(std::size_t) const override { return 0; }
  } data;
  data.info_.sparse = true;
  EXPECT_THROW(upload_training_data(data, false), std::invalid_argument);
  data.info_.sparse = false;
  data.info_.target = TargetKind::real;
  EXPECT_THROW(upload_training_data(data, false), std::invalid_argument);
}

TEST(Coordinates, ChunksAndGapsTogetherAreAllCoordinatesOnce) {
  const std::vector<Range> live{{0, 3}, {10, 5000}, {9001, 9002}};
  std::multiset<std::size_t> seen;
  for (const auto& ranges : {live, complement(live, 10000)}) {
    for (const gpu::Chunk& chunk : chunks_of(ranges)) {
      EXPECT_LE(chunk.size, gpu::kChunk);
      for (std::uint32_t i = 0; i < chunk.size; ++i) seen.insert(chunk.begin + i);
    }
  }
  EXPECT_EQ(seen.size(), 10000u);
  EXPECT_EQ(std::set<std::size_t>(seen.begin(), seen.end()).size(), 10000u);
}

TEST(Coordinates, GroupsOfFourCoverTheirRangesAndNoGroupComesTwice) {
  EXPECT_EQ(quads_of({{0, 3}, {10, 5000}, {5001, 5003}, {9001, 9002}}),
            (std::vector<Range>{{0, 1}, {2, 1251}, {2250, 2251}}));
  EXPECT_EQ(quads_of({{0, 1}, {3, 4}}), (std::vector<Range>{{0, 1}}));
  EXPECT_TRUE(quads_of({}).empty());
}

}  // namespace
}  // namespace fedep
