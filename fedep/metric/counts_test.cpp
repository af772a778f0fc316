// Scores of predicted counts, against their definitions and against totals over all counts.
#include "fedep/metric/counts.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

TEST(CountMetrics, ProbabilitiesAddToOneAndHaveTheirMoments) {
  for (const double mean : {0.2, 3.0, 40.0}) {
    for (const double spread : {0.0, 1e-7, 0.5, 30.0}) {
      double total = 0, first = 0, second = 0;
      for (double y = 0; y < 4000; ++y) {
        const double p = std::exp(log_count_probability(y, mean, spread));
        total += p;
        first += p * y;
        second += p * y * y;
      }
      EXPECT_NEAR(total, 1, 1e-6) << mean << " " << spread;
      EXPECT_NEAR(first / mean, 1, 1e-5) << mean << " " << spread;
      EXPECT_NEAR((second - first * first) / (mean + spread), 1, 1e-4) << mean << " " << spread;
    }
  }
}

TEST(CountMetrics, PerfectMeansHaveNoDevianceAndOthersHaveMore) {
  const std::vector<float> counts{0, 1, 5};
  CountMetrics perfect, off;
  perfect.add(std::vector<double>{1e-12, 1, 5}, {}, counts);
  off.add(std::vector<double>{0.5, 2, 4}, {}, counts);
  EXPECT_NEAR(perfect.deviance(), 0, 1e-11);
  EXPECT_NEAR(perfect.rmse(), 0, 1e-11);
  // 2 (0.5), 2 (log ½ + 1), 2 (5 log(5/4) - 1)
  EXPECT_NEAR(off.deviance(), 2.0 / 3 * (0.5 + std::log(0.5) + 1 + 5 * std::log(1.25) - 1), 1e-12);
  EXPECT_NEAR(off.rmse(), std::sqrt((0.25 + 1 + 1) / 3), 1e-12);
  EXPECT_NEAR(off.nll(), (0.5 + (2 - std::log(2)) + (4 - 5 * std::log(4) + std::lgamma(6))) / 3,
              1e-12);
  EXPECT_NEAR(off.error_ratio(), std::sqrt((0.25 + 1 + 1) / (0.5 + 2 + 4)), 1e-12);
}

TEST(CountMetrics, SpreadMakesASurpriseSmaller) {
  CountMetrics sure, unsure;
  sure.add(std::vector<double>{2}, {}, std::vector<float>{9});
  unsure.add(std::vector<double>{2}, std::vector<double>{4}, std::vector<float>{9});
  EXPECT_LT(unsure.nll(), sure.nll());
  EXPECT_NEAR(unsure.error_ratio(), 7 / std::sqrt(6), 1e-12);
}

// Pieces of spells by their own hazard, an event ending its exposure: one after a short while has a tiny mean.
TEST(CountMetrics, ErrorsOfTheTrueHazardAreAsLargeAsPredicted) {
  Stream stream({.seed = 5});
  std::vector<double> means;
  std::vector<float> counts;
  for (int i = 0; i < 20000; ++i) {
    const double time = -std::log(1 - stream.uniform());
    means.push_back(std::min(time, 1.0));
    counts.push_back(time < 1 ? 1 : 0);
  }
  CountMetrics metrics;
  metrics.add(means, {}, counts);
  EXPECT_NEAR(metrics.error_ratio(), 1, 0.03);
}

TEST(CountMetrics, MergedPartsAreTheWhole) {
  const std::vector<double> means{0.3, 4, 2.5}, spread{0.1, 0, 2};
  const std::vector<float> counts{1, 3, 2};
  CountMetrics whole, first, rest;
  whole.add(means, spread, counts);
  first.add({means.data(), 1}, {spread.data(), 1}, {counts.data(), 1});
  rest.add({means.data() + 1, 2}, {spread.data() + 1, 2}, {counts.data() + 1, 2});
  rest.merge(first);
  EXPECT_EQ(rest.count(), 3);
  EXPECT_EQ(rest.nll(), whole.nll());
  EXPECT_EQ(rest.deviance(), whole.deviance());
  EXPECT_EQ(rest.rmse(), whole.rmse());
  EXPECT_EQ(rest.error_ratio(), whole.error_ratio());
}

TEST(CountMetrics, EntropyIsThatOfItsProbabilities) {
  EXPECT_EQ(count_entropy(0, 0), 0);
  EXPECT_NEAR(count_entropy(1, 0), 1.3048422422, 1e-9);  // 1 + e^-1 Σ log(k!) / k!
  // A Gamma of shape 1 makes a geometric count: entropy of p = 1 / (1 + mean).
  const double p = 1.0 / 4;
  EXPECT_NEAR(count_entropy(3, 9), -(std::log(p) + 3 * std::log(1 - p)), 1e-9);
  EXPECT_NEAR(count_entropy(299.9, 0), count_entropy(300.1, 0), 1e-3);
  EXPECT_GT(count_entropy(5, 2), count_entropy(5, 0));
}

TEST(CountMetrics, AQuantileIsTheFirstCountThatEnoughProbabilityLiesBelow) {
  for (const auto& [mean, spread] : {std::pair{0.3, 0.0}, {3.0, 0.0}, {3.0, 9.0}, {40.0, 400.0}}) {
    for (const double part : {0.025, 0.5, 0.975}) {
      const double found = count_quantile(part, mean, spread);
      double below = 0;
      for (double n = 0; n < found; ++n) below += std::exp(log_count_probability(n, mean, spread));
      EXPECT_LT(below, part);
      EXPECT_GE(below + std::exp(log_count_probability(found, mean, spread)), part - 1e-12);
    }
  }
  EXPECT_EQ(count_quantile(0.975, 0, 0), 0);
  EXPECT_TRUE(std::isnan(count_quantile(0.5, NAN, 0)));
  // Many counts are normal.
  EXPECT_NEAR(count_quantile(0.975, 1e6, 0), 1e6 + 1.96 * 1e3, 2);
  EXPECT_NEAR(count_quantile(0.025, 1e9, 1e12), 1e9 - 1.959964 * std::sqrt(1e12 + 1e9), 2e3);
}

TEST(CountMetrics, WhatDoesNotFitIsRefused) {
  CountMetrics metrics;
  EXPECT_THROW(metrics.add(std::vector<double>{1, 2}, {}, std::vector<float>{1}), InputError);
  EXPECT_THROW(
      metrics.add(std::vector<double>{1}, std::vector<double>{1, 2}, std::vector<float>{1}),
      InputError);
}

}  // namespace
}  // namespace fedep
