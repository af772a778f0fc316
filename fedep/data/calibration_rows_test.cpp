#include "fedep/data/calibration_rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/validation.h"

namespace fedep {
namespace {

// Clients of unequal sizes, whose only feature is their example's number.
class Numbered final : public Dataset {
 public:
  Numbered() {
    info_.name = "numbered";
    info_.features = {1};
    info_.outputs = 2;
  }
  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples, const Address*,
                   Batch& out) const override {
    out = {};
    out.size = examples.size();
    for (const std::uint32_t example : examples) {
      out.dense.push_back(float(1000 * client + example));
      out.labels.push_back(0);
    }
  }
  std::optional<RawImages> raw_images() const override {
    RawImages raw;
    raw.clients = images_;
    return raw;
  }
  std::size_t test_size() const override { return 3; }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    out = {};
    out.size = end - begin;
    for (std::size_t i = begin; i < end; ++i) out.dense.push_back(-float(i + 1));
    out.labels.assign(out.size, 1);
  }
  const std::vector<std::string>& test_clients() const override { return test_; }
  std::size_t test_client(std::size_t) const override { return 0; }

 private:
  DatasetInfo info_;
  std::vector<std::pair<std::string, std::size_t>> clients_{{"a", 100}, {"b", 40}, {"c", 5}};
  std::vector<std::vector<std::uint32_t>> images_ = [] {
    std::vector<std::vector<std::uint32_t>> images;
    std::uint32_t next = 0;
    for (const std::size_t size : {100, 40, 5}) {
      images.emplace_back(size);
      std::iota(images.back().begin(), images.back().end(), next);
      next += std::uint32_t(size);
    }
    return images;
  }();
  std::vector<std::string> test_{"t"};
};

std::vector<float> training_values(const Dataset& data, std::size_t client) {
  std::vector<std::uint32_t> all(data.clients()[client].second);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  return batch.dense;
}

std::vector<float> test_values(const Dataset& data) {
  Batch batch;
  data.test_batch(0, data.test_size(), batch);
  return batch.dense;
}

TEST(CalibrationRows, AreNeverTrainedOn) {
  const auto data = without_calibration_rows(std::make_unique<Numbered>(), 0.05);
  std::multiset<float> all;
  for (std::size_t c = 0; c < 3; ++c) {
    for (const float x : training_values(*data, c)) all.insert(x);
  }
  ASSERT_NE(data->calibration(), nullptr);
  const std::vector<float> held = test_values(*data->calibration());
  EXPECT_EQ(held.size(), 5u + 2u);
  for (const float x : held) {
    EXPECT_EQ(all.count(x), 0u) << x;
    all.insert(x);
  }
  std::multiset<float> before;
  for (std::size_t c = 0; c < 3; ++c) {
    for (const float x : training_values(Numbered(), c)) before.insert(x);
  }
  EXPECT_EQ(all, before);
}

// A hospital's own intercept is inferred from its training rows wherever it is predicted.
TEST(CalibrationRows, KnowWhatTheirClientsTrainOn) {
  const auto data = without_calibration_rows(std::make_unique<Numbered>(), 0.3);
  const Dataset& calibration = *data->calibration();
  EXPECT_EQ(calibration.clients(), data->clients());
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(training_values(calibration, c), training_values(*data, c));
  }
}

TEST(CalibrationRows, AClientWithTooFewGivesNone) {
  const auto data = without_calibration_rows(std::make_unique<Numbered>(), 0.05);
  EXPECT_EQ(data->clients()[2].second, 5u);
}

TEST(CalibrationRows, LeaveTheTestSetAlone) {
  const auto data = without_calibration_rows(std::make_unique<Numbered>(), 0.3);
  EXPECT_EQ(test_values(*data), test_values(Numbered()));
}

TEST(CalibrationRows, ShareNothingWithValidationRows) {
  const auto validated = validation_dataset(std::make_unique<Numbered>(), 0.2);
  const std::vector<float> validation = test_values(*validated);
  const auto both = without_calibration_rows(validation_dataset(std::make_unique<Numbered>(), 0.2),
                                             0.1 / (1 - 0.2));
  EXPECT_EQ(test_values(*both), validation);
  const std::vector<float> calibration = test_values(*both->calibration());
  EXPECT_EQ(calibration.size(), 10u + 4u + 1u);
  for (const float x : calibration) {
    EXPECT_EQ(std::count(validation.begin(), validation.end(), x), 0);
  }
}

// Whoever crops elsewhere finds the same image under the same number.
TEST(CalibrationRows, RawImagesKeepTheirNumbers) {
  const auto data =
      without_calibration_rows(validation_dataset(std::make_unique<Numbered>(), 0.2), 0.1);
  const std::optional<RawImages> raw = data->raw_images();
  ASSERT_TRUE(raw);
  const Numbered whole;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::vector<float> values = training_values(*data, c);
    ASSERT_EQ(raw->numbers[c].size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(float(1000 * c + raw->numbers[c][i]), values[i]);
      EXPECT_EQ(raw->clients[c][i], whole.raw_images()->clients[c][raw->numbers[c][i]]);
    }
  }
}

}  // namespace
}  // namespace fedep
