#include "fedep/sim/coverage/drawn_outcomes.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/memory_dataset.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kRows = 4000, kColumns = 2;

// Two clients with half of the rows each.
std::unique_ptr<Dataset> rows_with(TargetKind target, bool exposed = false) {
  Stream stream({.seed = 5});
  Batch batch;
  batch.size = kRows;
  for (std::size_t i = 0; i < kRows * kColumns; ++i) batch.dense.push_back(float(stream.normal()));
  if (target == TargetKind::binary) {
    batch.labels.assign(kRows, 7);  // no outcome of the rows' own is ever seen
  } else {
    batch.reals.assign(kRows, 7e6f);
  }
  if (exposed) batch.log_exposure.assign(kRows, std::log(3.0f));
  ClientRows clients;
  clients.add("A", kRows / 2);
  clients.add("B", kRows / 2);
  return memory_dataset({.name = "made",
                         .features = {std::int64_t(kColumns)},
                         .target = target,
                         .outputs = 1,
                         .has_exposure = exposed,
                         .feature_names = {},
                         .output_names = {}},
                        {clients, batch_rows(std::move(batch))}, {{}, batch_rows({})});
}

// Sums over all rows of outcome - expectation, in standard errors.
template <class Mean, class Variance>
double surprise(const Dataset& data, std::span<const double> truth, Mean mean, Variance variance) {
  double gap = 0, square = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    const Batch batch = training_batch(data, k);
    for (std::size_t i = 0; i < batch.size; ++i) {
      const double f = truth[0] * batch.dense[2 * i] + truth[1] * batch.dense[2 * i + 1] + truth[2];
      gap += (batch.labels.empty() ? double(batch.reals[i]) : double(batch.labels[i])) - mean(f);
      square += variance(f);
    }
  }
  return gap / std::sqrt(square);
}

const std::vector<double> kTruth{0.8, -0.5, 0.3};

TEST(DrawnOutcomes, FollowTheModelAndNothingElseChanges) {
  const auto logistic = [](double f) { return 1 / (1 + std::exp(-f)); };
  const auto yes_no = rows_with(TargetKind::binary);
  const auto drawn = draw_outcomes(*yes_no, kTruth, TargetKind::binary, 9);
  EXPECT_LT(std::abs(surprise(*drawn, kTruth, logistic,
                              [&](double f) { return logistic(f) * (1 - logistic(f)); })),
            4);
  EXPECT_EQ(drawn->clients(), yes_no->clients());
  EXPECT_EQ(training_batch(*drawn, 1).dense, training_batch(*yes_no, 1).dense);
  EXPECT_EQ(drawn->test_size(), 0u);

  const auto numbers = rows_with(TargetKind::real);
  const auto noisy = draw_outcomes(*numbers, kTruth, Likelihood(TargetKind::real, 0.2), 9);
  const auto itself = [](double f) { return f; };
  EXPECT_LT(std::abs(surprise(*noisy, kTruth, itself, [](double) { return 0.04; })), 4);

  const auto counts = rows_with(TargetKind::count, true);
  const auto exposed = draw_outcomes(*counts, kTruth, TargetKind::count, 9);
  const auto tripled = [](double f) { return 3 * std::exp(f); };
  EXPECT_LT(std::abs(surprise(*exposed, kTruth, tripled, tripled)), 4);
}

TEST(DrawnOutcomes, ANumbersNoiseIsTheModels) {
  const auto numbers = rows_with(TargetKind::real);
  const auto noisy = draw_outcomes(*numbers, kTruth, Likelihood(TargetKind::real, 0.2), 9);
  double square = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    const Batch batch = training_batch(*noisy, k);
    for (std::size_t i = 0; i < batch.size; ++i) {
      const double f =
          kTruth[0] * batch.dense[2 * i] + kTruth[1] * batch.dense[2 * i + 1] + kTruth[2];
      square += (batch.reals[i] - f) * (batch.reals[i] - f) / kRows;
    }
  }
  EXPECT_NEAR(square, 0.04, 0.004);
}

TEST(DrawnOutcomes, AreThoseOfTheirSeedInWhateverOrderTheyAreAsked) {
  const auto rows = rows_with(TargetKind::real);
  const auto draw = [&](std::uint64_t seed) {
    return draw_outcomes(*rows, kTruth, TargetKind::real, seed);
  };
  EXPECT_EQ(training_batch(*draw(1), 0), training_batch(*draw(1), 0));
  EXPECT_NE(training_batch(*draw(1), 0), training_batch(*draw(2), 0));
  Batch two;
  const std::vector<std::uint32_t> backwards{1, 0};
  draw(1)->train_batch(1, backwards, nullptr, two);
  EXPECT_EQ(two.reals[0], training_batch(*draw(1), 1).reals[1]);
  EXPECT_EQ(two.reals[1], training_batch(*draw(1), 1).reals[0]);
}

TEST(DrawnOutcomes, TruthsAreOfThePrior) {
  const std::vector<double> truth = draw_truth({.mean = 2, .precision = 25}, 20000, 4);
  double sum = 0, square = 0;
  for (const double one : truth) sum += one;
  for (const double one : truth) square += (one - 2) * (one - 2);
  EXPECT_NEAR(sum / 20000, 2, 4 * 0.2 / std::sqrt(20000.0));
  EXPECT_NEAR(square / 20000, 0.04, 4 * 0.04 * std::sqrt(2 / 20000.0));
  EXPECT_EQ(truth, draw_truth({.mean = 2, .precision = 25}, 20000, 4));
}

TEST(DrawnOutcomes, CountsThatNoFloatHoldsAreRefused) {
  const auto counts = rows_with(TargetKind::count);
  const std::vector<double> large{0, 0, 30};
  try {
    draw_outcomes(*counts, large, TargetKind::count, 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("counts of e^30"));
  }
}

}  // namespace
}  // namespace fedep
