#include "fedep/page/figure/frame.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(Ticks, AreTheMultiplesOfTheirSpacingWithinTheRange) {
  const std::vector<double> expected{-0.5, 0, 0.5, 1};
  EXPECT_EQ(ticks({-0.6, 1.2}, 0.5), expected);
  EXPECT_TRUE(ticks({0.1, 0.4}, 0.5).empty());
}

TEST(Ticks, AreFewHoweverCloseTheRangesEndsAreAndHoweverFar) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (const double low : {0.0, 1.0, 0.5123, -3e7, 1e300, -kLargest}) {
    double high = low;
    for (int ulps = 1; ulps <= 64; ++ulps) {
      high = std::nextafter(high, kInfinity);
      const AxisRange range{low, high};
      EXPECT_LE(ticks(range, tick_spacing(range.size(), 6)).size(), 20u) << low << ' ' << ulps;
    }
  }
  for (const AxisRange& range : {AxisRange{0, 0}, AxisRange{-kLargest, kLargest}, AxisRange{}}) {
    EXPECT_LE(ticks(range, tick_spacing(range.size(), 6)).size(), 20u);
  }
  EXPECT_LE(ticks({0, 1}, 1e-300).size(), 1000u);
}

}  // namespace
}  // namespace fedep
