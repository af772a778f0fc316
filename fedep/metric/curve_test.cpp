#include "fedep/metric/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

const double kNan = std::nan("");

// h(0), …, h(59); pandas 3.1.1 says of rolling(10).mean() what the tests below expect.
std::vector<double> bumpy_curve() {
  std::vector<double> curve;
  for (int i = 0; i < 60; ++i) {
    curve.push_back(static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0);
  }
  return curve;
}

std::ptrdiff_t missing(const std::vector<double>& means) {
  return std::count_if(means.begin(), means.end(), [](double mean) { return std::isnan(mean); });
}

TEST(RunningMean, IsUndefinedUntilTheWindowIsFull) {
  const std::vector<double> means = running_mean(std::vector<double>{1, 2, 3, 7}, 3);
  EXPECT_TRUE(std::isnan(means[0]));
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_EQ(means[2], 2);
  EXPECT_EQ(means[3], 4);
}

TEST(RunningMean, WithWindowOneIsTheCurve) {
  const std::vector<double> curve = bumpy_curve();
  EXPECT_EQ(running_mean(curve, 1), curve);
}

TEST(RunningMean, AgreesWithPandas) {
  std::vector<double> curve = bumpy_curve();
  const std::vector<double> means = running_mean(curve, 10);
  EXPECT_EQ(missing(means), 9);
  EXPECT_NEAR(means[9], 0.45104426901169187, 1e-14);
  EXPECT_NEAR(means[30], 0.7209453382632157, 1e-14);
  EXPECT_NEAR(means[59], 0.45695013490556613, 1e-14);

  curve[20] = kNan;
  EXPECT_EQ(missing(running_mean(curve, 10)), 19);  // every window that holds it, and no other
}

TEST(RunningMean, OfAShortOrEmptyCurveHasNoValue) {
  EXPECT_TRUE(running_mean({}, 10).empty());
  EXPECT_EQ(missing(running_mean(std::vector<double>{1, 2}, 3)), 2);
  EXPECT_THROW(running_mean({}, 0), InputError);
}

TEST(RoundsToThreshold, CountsCompletedRoundsFromOne) {
  const std::vector<double> curve{0.1, 0.2, 0.3, 0.4};
  EXPECT_EQ(rounds_to_threshold(curve, 0.1, 1), 1);
  EXPECT_EQ(rounds_to_threshold(curve, 0.4, 1), 4);
  EXPECT_EQ(rounds_to_threshold(curve, 0.0, 2), 2);  // no mean before the window is full
  EXPECT_EQ(rounds_to_threshold(curve, 0.3, 2), 4);  // (0.3 + 0.4) / 2
}

TEST(RoundsToThreshold, ReachesAValueThatIsMetExactly) {
  for (const double value : {0.45, 0.5, 0.86, 0.865}) {  // the paper's thresholds
    EXPECT_EQ(rounds_to_threshold(std::vector<double>(12, value), value), 10);
  }
}

TEST(RoundsToThreshold, StaysWithTheFirstTimeAndMayNeverHappen) {
  EXPECT_EQ(rounds_to_threshold(bumpy_curve(), 0.6), 28);  // pandas: index 27
  EXPECT_EQ(rounds_to_threshold(bumpy_curve(), 0.73), std::nullopt);
  EXPECT_EQ(rounds_to_threshold({}, 0.0), std::nullopt);
  EXPECT_EQ(rounds_to_threshold(std::vector<double>(9, 1.0), 0.5), std::nullopt);
}

TEST(BestByRound, IsTheLargestMeanUpToThatRound) {
  const std::vector<double> curve = bumpy_curve();
  EXPECT_NEAR(best_by_round(curve, 60, 10), 0.7209453382632157, 1e-14);
  EXPECT_NEAR(best_by_round(curve, 31, 10), 0.7209453382632157, 1e-14);
  EXPECT_LT(best_by_round(curve, 30, 10), 0.72);  // the best comes with round 31
  EXPECT_EQ(best_by_round(curve, 10, 10), running_mean(curve, 10)[9]);
}

TEST(BestByRound, NeverFallsWithMoreRounds) {
  const std::vector<double> curve = bumpy_curve();
  for (std::int64_t rounds = 11; rounds <= 60; ++rounds) {
    EXPECT_GE(best_by_round(curve, rounds, 10), best_by_round(curve, rounds - 1, 10));
  }
}

TEST(BestByRound, DoesNotExistForAShorterRunOrAnUnfilledWindow) {
  const std::vector<double> curve(120, 0.5);
  EXPECT_EQ(best_by_round(curve, 120), 0.5);
  EXPECT_TRUE(std::isnan(best_by_round(curve, 121)));
  EXPECT_TRUE(std::isnan(best_by_round(curve, 99)));
  EXPECT_THROW(best_by_round(curve, 0), InputError);
}

TEST(BestByRound, StepsOverWhatIsMissing) {
  const std::vector<double> curve{kNan, 0.2, 0.4, kNan, 0.1, 0.1};
  EXPECT_NEAR(best_by_round(curve, 6, 2), 0.3, 1e-15);
}

}  // namespace
}  // namespace fedep
