#include "fedep/metric/normal_interval.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

TEST(NormalIntervals, HoldTheirPartOfADistribution) {
  for (const double level : {0.001, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999999}) {
    EXPECT_NEAR(std::erf(deviations_of(level) / std::sqrt(2.0)), level, 1e-14);
  }
  EXPECT_NEAR(deviations_of(0.95), 1.959963984540054, 1e-13);
}

TEST(NormalIntervals, NestByLevel) {
  double before = 0;
  for (double level = 0.01; level < 1; level += 0.01) {
    EXPECT_GT(deviations_of(level), before);
    before = deviations_of(level);
  }
}

TEST(NormalIntervals, OfNothingOrEverythingAreRefused) {
  for (const double level : {0.0, 1.0, -0.5, 95.0, std::nan("")}) {
    EXPECT_THROW(deviations_of(level), InputError);
  }
}

}  // namespace
}  // namespace fedep
