#include "fedep/inference/precision.h"

#include <limits>

#include <gtest/gtest.h>

namespace fedep {
namespace {

using V = HostVector<double>;

TEST(ClipToSpread, WithWidthZeroChangesNothing) {
  const V x{1, -50, 3, 1000};
  EXPECT_EQ(clip_to_spread(x, 0), x);
  EXPECT_EQ(clip_to_spread(V{}, 0), V{});
}

TEST(ClipToSpread, IsMeanPlusAndMinusWidthTimesPopulationDeviation) {
  // Mean 1, variance (4·1 + 16)/5 = 4 with divisor 5: deviation 2.
  const V x{0, 0, 0, 0, 5};
  EXPECT_EQ(clip_to_spread(x, 1), (V{0, 0, 0, 0, 3}));
  EXPECT_EQ(clip_to_spread(V{0, 0, 0, 0, -5}, 1), (V{0, 0, 0, 0, -3}));
  EXPECT_EQ(clip_to_spread(x, 2), x);
}

TEST(ClipToSpread, LeavesConstantsAndFollowsScale) {
  const V same(1000, 0.1);
  const V clipped = clip_to_spread(same, 2);
  for (const double x : clipped) EXPECT_DOUBLE_EQ(x, 0.1);
  const V x{1, 2, 3, 4, 100};
  const V a = clip_to_spread(8.0 * x, 1.5), b = 8.0 * clip_to_spread(x, 1.5);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_DOUBLE_EQ(a[i], b[i]);
  EXPECT_LT(b[4], 800);
}

TEST(ClipToSpread, DoesNotHideANaN) {
  const V x = clip_to_spread(V{1, std::numeric_limits<double>::quiet_NaN(), 2}, 2);
  EXPECT_TRUE(std::isnan(x[1]));
}

TEST(Norm, IsTheEuclideanOne) {
  EXPECT_EQ(norm(V{3, -4}), 5);
  EXPECT_EQ(norm(V{}), 0);
}

}  // namespace
}  // namespace fedep
