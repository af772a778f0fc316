#include "fedep/metric/interval_coverage.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kNames{"age", "weight", "intercept"};

// Truths are normal; a posterior claims a deviation of `claimed`, and its mean is off by N(0, 1) and a
// bias. A right one claims 1 and has no bias.
std::vector<Replicate> simulated(std::size_t replicates, double claimed, double bias = 0) {
  Stream stream({.seed = 3, .purpose = Purpose::test});
  std::vector<Replicate> out(replicates);
  for (Replicate& one : out) {
    for (std::size_t j = 0; j < kNames.size(); ++j) {
      KnownTruth known{.truth = 5 * stream.normal(), .deviation = claimed};
      known.mean = known.truth + stream.normal() + bias;
      for (std::size_t i = 0; i < kRankDraws; ++i) {
        if (known.mean + claimed * stream.normal() < known.truth) ++known.rank;
      }
      one.push_back(known);
    }
  }
  return out;
}

std::string doubts_of(const std::vector<Replicate>& replicates) {
  std::string out;
  for (const std::string& doubt : coverage_doubts(interval_coverage(replicates), kNames)) {
    out += doubt + "\n";
  }
  return out;
}

TEST(IntervalCoverage, RightIntervalsHoldWhatTheySay) {
  const IntervalCoverage found = interval_coverage(simulated(2000, 1));
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    EXPECT_NEAR(found.all.covered[i].value, kIntervalLevels[i], 3.5 * found.all.covered[i].error);
    // Of independent coefficients the error is a binomial share's.
    const double level = kIntervalLevels[i];
    EXPECT_NEAR(found.all.covered[i].error, std::sqrt(level * (1 - level) / 6000), 5e-4);
  }
  EXPECT_NEAR(found.all.deviation_ratio.value, 1, 3.5 * found.all.deviation_ratio.error);
  EXPECT_NEAR(found.all.deviation_ratio.error, 1 / std::sqrt(2 * 6000.0), 1e-3);
  EXPECT_GT(found.ranks_p_value(), 0.001);
  EXPECT_THAT(doubts_of(simulated(2000, 1)), IsEmpty());
}

TEST(IntervalCoverage, HalvedVariancesAreCaughtByEveryNumber) {
  const std::vector<Replicate> narrow = simulated(400, std::sqrt(0.5));
  const IntervalCoverage found = interval_coverage(narrow);
  EXPECT_NEAR(found.all.deviation_ratio.value, std::sqrt(0.5), 4 * found.all.deviation_ratio.error);
  EXPECT_NEAR(found.all.covered[2].value, 0.834, 0.03);  // P(|N(0, 2)| < 1.96)
  const std::string doubts = doubts_of(narrow);
  for (const char* level : {"50 %", "80 %", "95 %"}) EXPECT_THAT(doubts, HasSubstr(level));
  EXPECT_THAT(doubts, HasSubstr("too narrow"));
  EXPECT_THAT(doubts, HasSubstr("deviations are 0.7"));
  EXPECT_THAT(doubts, HasSubstr("ranks of truths"));
}

TEST(IntervalCoverage, WideIntervalsAndMeansThatAreOffAreCaught) {
  EXPECT_THAT(doubts_of(simulated(400, 2)), HasSubstr("too wide"));
  EXPECT_THAT(doubts_of(simulated(400, 1, 0.5)), HasSubstr("ranks of truths"));
}

TEST(IntervalCoverage, OfOneCoefficientTheErrorIsItsOwn) {
  std::vector<Replicate> replicates = simulated(500, 1);
  for (Replicate& one : replicates) one[1].deviation = 0.1;
  const IntervalCoverage found = interval_coverage(replicates);
  EXPECT_LT(found.coefficients[1].covered[2].value, 0.25);
  EXPECT_NEAR(found.coefficients[1].deviation_ratio.value, 0.1, 0.02);
  EXPECT_NEAR(found.coefficients[0].deviation_ratio.value, 1, 0.15);
  EXPECT_THAT(coverage_doubts(found, kNames).front(), HasSubstr("50 %"));
}

TEST(IntervalCoverage, RanksAreCountedOncePerReplicate) {
  const IntervalCoverage found = interval_coverage(simulated(123, 1));
  for (const CoefficientCoverage& one : found.coefficients) {
    std::size_t all = 0;
    for (const std::size_t count : one.ranks) all += count;
    EXPECT_EQ(all, 123u);
    EXPECT_EQ(one.bins, 20u);
  }
}

TEST(IntervalCoverage, OfManyCoefficientsTheSmallestPValueCountsAsOftenAsThereAreSome) {
  const IntervalCoverage found = interval_coverage(simulated(200, 1));
  double least = 1;
  for (const CoefficientCoverage& one : found.coefficients) least = std::min(least, one.p_value);
  EXPECT_DOUBLE_EQ(found.ranks_p_value(), std::min(1.0, 3 * least));
  EXPECT_LT(least, 1);
}

TEST(IntervalCoverage, BinsExpectFiveRanks) {
  EXPECT_EQ(rank_bins(1000), 20u);
  EXPECT_EQ(rank_bins(100), 20u);
  EXPECT_EQ(rank_bins(99), 10u);
  EXPECT_EQ(rank_bins(49), 5u);
  EXPECT_EQ(rank_bins(20), 4u);
  EXPECT_EQ(rank_bins(19), 0u);
}

// Known quantiles, and integrals of the density.
TEST(IntervalCoverage, TailsOfChiSquareAreThose) {
  EXPECT_NEAR(chi_square_tail(19, 19), 0.4568361, 1e-7);
  EXPECT_NEAR(chi_square_tail(30.143527, 19), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(5, 19), 0.9994309, 1e-7);
  EXPECT_NEAR(chi_square_tail(100, 19) / 5.35556e-13, 1, 1e-4);
  EXPECT_NEAR(chi_square_tail(3.841458821, 1), 0.05, 1e-9);
  EXPECT_EQ(chi_square_tail(0, 3), 1);
}

// Where all agree the measured error is 0, and yet nothing is certain.
TEST(IntervalCoverage, FewReplicatesProveNothing) {
  EXPECT_THAT(doubts_of(simulated(2, 1)), Not(HasSubstr("95 %")));
}

TEST(IntervalCoverage, OneReplicateOrOnesOfDifferentLengthAreRefused) {
  EXPECT_THROW(interval_coverage(simulated(1, 1)), InputError);
  std::vector<Replicate> replicates = simulated(3, 1);
  replicates[1].pop_back();
  EXPECT_THROW(interval_coverage(replicates), InputError);
}

}  // namespace
}  // namespace fedep
