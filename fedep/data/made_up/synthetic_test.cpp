#include "fedep/data/made_up/synthetic.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

// Mean over a client's examples of feature j.
double mean(const Batch& batch, std::size_t dimension, std::size_t j) {
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) sum += batch.dense[i * dimension + j];
  return sum / double(batch.size);
}

TEST(Synthetic, ASeedRepeatsAndAnotherDiffers) {
  const DataSettings settings{.name = "synthetic", .clients = 3};
  EXPECT_EQ(training_batch(*open_synthetic(settings, 1), 2),
            training_batch(*open_synthetic(settings, 1), 2));
  EXPECT_NE(training_batch(*open_synthetic(settings, 1), 2),
            training_batch(*open_synthetic(settings, 2), 2));
}

TEST(Synthetic, MoreClientsLeaveTheFirstAsTheyAre) {
  const auto few = open_synthetic({.clients = 3}, 1), many = open_synthetic({.clients = 10}, 1);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(training_batch(*few, k), training_batch(*many, k));
}

TEST(Synthetic, SizesFollowTheSettings) {
  const auto data = open_synthetic({.clients = 400, .dimension = 2, .examples = 100}, 1);
  std::size_t total = data->test_size(), smallest = 1000, largest = 0;
  for (const auto& [id, examples] : data->clients()) {
    total += examples;
    smallest = std::min(smallest, examples);
    largest = std::max(largest, examples);
  }
  // Half of lognormal(-1/2, 1) with mean 1 and variance e - 1: 100 ± 66 / sqrt(400).
  EXPECT_NEAR(double(total) / 400, 100, 13);
  EXPECT_NEAR(double(data->test_size()) / double(total), 0.2, 0.01);
  EXPECT_GE(smallest, 40u);
  EXPECT_GT(largest, 200u) << "sizes are skewed";
  EXPECT_LE(largest, 800u);
}

TEST(Synthetic, FeaturesHaveThePaperVariances) {
  const DataSettings settings{.clients = 1, .examples = 20000};
  const Batch batch = training_batch(*open_synthetic(settings, 3), 0);
  for (const std::size_t j : {0u, 1u, 9u, 59u}) {
    const double centre = mean(batch, 60, j);
    double variance = 0;
    for (std::size_t i = 0; i < batch.size; ++i) {
      variance += std::pow(batch.dense[i * 60 + j] - centre, 2) / double(batch.size);
    }
    EXPECT_NEAR(variance / std::pow(double(j + 1), -1.2), 1, 0.06) << j;
  }
}

TEST(Synthetic, BetaSpreadsTheFeatures) {
  // A client's features, averaged over 60 columns, are around B_k ± 1/sqrt(60).
  const auto spread = [](double beta) {
    const auto data = open_synthetic({.clients = 200, .examples = 20, .beta = beta}, 1);
    double squares = 0;
    for (std::size_t k = 0; k < 200; ++k) {
      const Batch batch = training_batch(*data, k);
      double centre = 0;
      for (std::size_t j = 0; j < 60; ++j) centre += mean(batch, 60, j) / 60;
      squares += centre * centre / 200;
    }
    return std::sqrt(squares);
  };
  EXPECT_NEAR(spread(0), std::sqrt(1.0 / 60), 0.03);
  EXPECT_NEAR(spread(2), 2, 0.4);
}

TEST(Synthetic, EveryClassIsSomewhere) {
  const auto data = open_synthetic({.clients = 50}, 1);
  std::vector<int> seen(kSyntheticClasses, 0);
  for (std::size_t k = 0; k < 50; ++k) {
    for (const std::int32_t label : training_batch(*data, k).labels) ++seen.at(std::size_t(label));
  }
  for (const int n : seen) EXPECT_GT(n, 50);
  EXPECT_EQ(data->info().outputs, kSyntheticClasses);
  EXPECT_EQ(data->info().feature_count(), 60u);
}

TEST(Synthetic, LimitsAndBadSettings) {
  const auto data = open_synthetic({.clients = 20, .min_examples = 60, .max_examples = 50}, 1);
  EXPECT_LT(data->clients().size(), 20u) << "some have fewer than 60";
  for (const auto& [id, examples] : data->clients()) EXPECT_LE(examples, 50u);
  EXPECT_THROW(open_synthetic({.clients = 0}, 1), InputError);
  EXPECT_THROW(open_synthetic({.dimension = 0}, 1), InputError);
  EXPECT_THROW(open_synthetic({.examples = -1}, 1), InputError);
  EXPECT_THROW(open_synthetic({.alpha = -1}, 1), InputError);
  EXPECT_NE(message_of<InputError>([] {
              open_synthetic({.clients = 2, .min_examples = 100000}, 1);
            }).find("100000 examples (data.min_examples)"),
            std::string::npos);
}

}  // namespace
}  // namespace fedep
