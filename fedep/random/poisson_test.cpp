#include "fedep/random/poisson.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(Poisson, MeanAndVarianceAreTheMean) {
  Stream stream({.seed = 1, .purpose = Purpose::test});
  constexpr int kDraws = 20000;
  for (const double mean : {0.01, 0.7, 4.0, 29.9, 30.1, 200.0, 3e4}) {
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double count = draw_poisson(stream, mean);
      ASSERT_EQ(count, std::floor(count));
      ASSERT_GE(count, 0);
      sum += count - mean;
      squares += (count - mean) * (count - mean);
    }
    EXPECT_LT(std::abs(sum / kDraws), 4 * std::sqrt(mean / kDraws)) << mean;
    // The variance of (count - mean)² is mean + 2 mean².
    EXPECT_LT(std::abs(squares / kDraws - mean), 4 * std::sqrt((mean + 2 * mean * mean) / kDraws))
        << mean;
  }
}

TEST(Poisson, FrequenciesAreTheProbabilities) {
  Stream stream({.seed = 2, .purpose = Purpose::test});
  constexpr int kDraws = 50000;
  for (const double mean : {1.5, 35.0}) {
    std::map<int, int> seen;
    for (int i = 0; i < kDraws; ++i) ++seen[int(draw_poisson(stream, mean))];
    for (int count = 0; count < 60; ++count) {
      const double p = std::exp(count * std::log(mean) - mean - std::lgamma(count + 1.0));
      EXPECT_LT(std::abs(seen[count] - kDraws * p), 4.5 * std::sqrt(kDraws * p) + 2) << count;
    }
  }
}

TEST(Poisson, AMeanOfZeroIsZero) {
  Stream stream({.seed = 3, .purpose = Purpose::test});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(draw_poisson(stream, 0), 0);
}

}  // namespace
}  // namespace fedep
