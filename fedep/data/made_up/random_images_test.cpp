#include "fedep/data/made_up/random_images.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::size_t kPixels = 32 * 32 * 3;

// Whether each image of `part` is at the same place in `whole`.
void expect_begins_with(const Batch& whole, const Batch& part) {
  ASSERT_LE(part.size, whole.size);
  EXPECT_TRUE(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin()));
  EXPECT_TRUE(std::equal(part.dense.begin(), part.dense.end(), whole.dense.begin()));
}

TEST(RandomImages, ASeedRepeatsAndAnotherDiffers) {
  const DataSettings settings{.clients = 3, .examples = 10};
  const auto one = open_random_images(settings, 1), again = open_random_images(settings, 1);
  EXPECT_EQ(training_batch(*one, 2), training_batch(*again, 2));
  EXPECT_EQ(test_batch(*one), test_batch(*again));
  EXPECT_NE(training_batch(*one, 2), training_batch(*open_random_images(settings, 2), 2));
}

TEST(RandomImages, MoreClientsOrExamplesLeaveTheFirstAsTheyAre) {
  const auto few = open_random_images({.clients = 3, .examples = 5}, 1);
  const auto many = open_random_images({.clients = 8, .examples = 5}, 1);
  const auto more = open_random_images({.clients = 3, .examples = 20}, 1);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(training_batch(*few, k), training_batch(*many, k));
    expect_begins_with(training_batch(*more, k), training_batch(*few, k));
  }
  expect_begins_with(test_batch(*many), test_batch(*few));
}

TEST(RandomImages, ClientsAndPartsHaveImagesOfTheirOwn) {
  const auto data = open_random_images({.clients = 2, .examples = 10, .test_fraction = 1}, 1);
  EXPECT_NE(training_batch(*data, 0).dense, training_batch(*data, 1).dense);
  Batch test;
  data->test_batch(0, 10, test);
  EXPECT_EQ(data->test_client(9), 0u) << "the first ten are client 0's";
  EXPECT_NE(training_batch(*data, 0).dense, test.dense);
}

TEST(RandomImages, TheSpeedJobHasAsManyImagesAsCifar10) {
  const auto data =
      open_random_images({.name = "random_images", .clients = 1000, .examples = 50}, 1);
  EXPECT_EQ(data->clients().size(), 1000u);
  for (const auto& [id, examples] : data->clients()) EXPECT_EQ(examples, 50u);
  EXPECT_EQ(data->test_size(), 10000u);
  EXPECT_EQ(data->info().features, (std::vector<std::int64_t>{32, 32, 3}));
  EXPECT_EQ(data->info().outputs, kRandomImageClasses);
  EXPECT_EQ(data->info().target, TargetKind::label);
}

TEST(RandomImages, LabelsAreEquallyFrequentAndMixedWithinAClient) {
  const auto data = open_random_images({.clients = 20, .examples = 250, .test_fraction = 0}, 1);
  std::vector<int> seen(kRandomImageClasses, 0);
  for (std::size_t k = 0; k < 20; ++k) {
    std::vector<int> own(kRandomImageClasses, 0);
    for (const std::int32_t label : training_batch(*data, k).labels) ++own.at(std::size_t(label));
    for (std::size_t c = 0; c < own.size(); ++c) {
      EXPECT_GT(own[c], 0) << "client " << k;  // 25 ± 4.7
      seen[c] += own[c];
    }
  }
  for (const int n : seen) EXPECT_NEAR(n, 500, 100);  // binomial: ± 21
}

// pixel - picture is uniform on 0, 1/255, ..., 127/255: mean 63.5, variance (128² - 1) / 12.
TEST(RandomImages, WithinALabelAPixelIsUniformOver128Bytes) {
  const auto data = open_random_images({.clients = 1, .examples = 5000, .test_fraction = 0}, 1);
  const Batch batch = training_batch(*data, 0);
  for (const std::size_t place : {0u, 1000u, 3071u}) {
    double count = 0, sum = 0, squares = 0, least = 255, most = 0;
    for (std::size_t i = 0; i < batch.size; ++i) {
      if (batch.labels[i] != 3) continue;
      const double byte = std::round(255.0 * double(batch.dense[i * kPixels + place]));
      ++count;
      sum += byte;
      squares += byte * byte;
      least = std::min(least, byte);
      most = std::max(most, byte);
    }
    const double mean = sum / count;
    EXPECT_LE(most - least, 127) << place;
    EXPECT_GE(most - least, 115) << place;
    EXPECT_NEAR(mean, (least + most) / 2, 9) << place;  // 37 / sqrt(500) = 1.7 and the ends
    EXPECT_NEAR((squares / count - mean * mean) / ((128.0 * 128.0 - 1) / 12), 1, 0.2) << place;
  }
}

TEST(RandomImages, TheNearestMeanOfTheTrainingImagesNamesATestImage) {
  const auto data = open_random_images({.clients = 2, .examples = 200}, 1);
  std::vector<std::vector<double>> mean(kRandomImageClasses, std::vector<double>(kPixels, 0.0));
  std::vector<double> count(kRandomImageClasses, 0.0);
  for (std::size_t k = 0; k < 2; ++k) {
    const Batch batch = training_batch(*data, k);
    for (std::size_t i = 0; i < batch.size; ++i) {
      const auto label = std::size_t(batch.labels[i]);
      ++count[label];
      for (std::size_t j = 0; j < kPixels; ++j) mean[label][j] += batch.dense[i * kPixels + j];
    }
  }
  const Batch test = test_batch(*data);
  std::size_t right = 0;
  for (std::size_t i = 0; i < test.size; ++i) {
    std::vector<double> distance(kRandomImageClasses, 0.0);
    for (std::size_t c = 0; c < distance.size(); ++c) {
      for (std::size_t j = 0; j < kPixels; ++j) {
        distance[c] += std::pow(test.dense[i * kPixels + j] - mean[c][j] / count[c], 2);
      }
    }
    const auto nearest = std::min_element(distance.begin(), distance.end()) - distance.begin();
    right += nearest == test.labels[i] ? 1 : 0;
  }
  EXPECT_EQ(test.size, 80u);
  EXPECT_GE(right, 79u);
}

TEST(RandomImages, TheBytesAreThereForAGpu) {
  const auto data = open_random_images({.clients = 3, .examples = 4}, 1);
  const std::optional<RawImages> raw = data->raw_images();
  ASSERT_TRUE(raw);
  ASSERT_EQ(raw->pixels.size(), 12 * kPixels);
  EXPECT_FALSE(raw->crop) << "whole images";
  const Batch batch = training_batch(*data, 2);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t image = raw->clients[2][i];
    EXPECT_EQ(raw->labels[image], batch.labels[i]);
    for (std::size_t j = 0; j < kPixels; ++j) {
      ASSERT_EQ(float(raw->pixels[image * kPixels + j]) / 255.0f, batch.dense[i * kPixels + j]);
    }
  }
}

TEST(RandomImages, CanBeGivenOutAnewAndCut) {
  const DataSettings settings{
      .partition = "dirichlet", .clients = 10, .examples = 40, .concentration = 0.01};
  const auto data = open_random_images(settings, 1);
  const Batch own = training_batch(*data, 0);
  std::vector<std::int32_t> labels = own.labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  EXPECT_EQ(own.size, 40u);
  EXPECT_LE(labels.size(), 5u) << "few labels a client";
  EXPECT_EQ(open_random_images({.clients = 2, .max_examples = 7}, 1)->clients()[1].second, 7u);
  EXPECT_EQ(open_random_images({.clients = 2, .test_fraction = 0}, 1)->test_size(), 0u);
}

TEST(RandomImages, BadSettingsAreRefused) {
  EXPECT_THROW(open_random_images({.clients = 0}, 1), InputError);
  EXPECT_THROW(open_random_images({.examples = 0}, 1), InputError);
  EXPECT_THROW(open_random_images({.test_fraction = -0.1}, 1), InputError);
  EXPECT_THROW(open_random_images({.clients = 1 << 16, .examples = 1 << 16}, 1), InputError);
  EXPECT_THROW(open_random_images({.clients = 2, .min_examples = 101}, 1), InputError);
  EXPECT_THROW(open_random_images({.partition = "oddly"}, 1), InputError);
}

}  // namespace
}  // namespace fedep
