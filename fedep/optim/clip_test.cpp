#include "fedep/optim/clip.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

TEST(Clip, AClippedDeltaHasTheLimitAsItsNorm) {
  V eta(100), lambda(100);
  fill_normal({.seed = 1}, eta.span());
  fill_normal({.seed = 2}, lambda.span());
  for (const Message& delta : {Message(eta, lambda), Message(eta, 0.5f)}) {
    const double factor = clip_factor(joint_norm(delta), 3);
    EXPECT_LT(factor, 1);
    EXPECT_NEAR(joint_norm(power(delta, float(factor))), 3, 1e-5);
  }
}

TEST(Clip, ActsFromTheLimitOn) {
  EXPECT_EQ(clip_factor(std::nextafter(5.0, 0.0), 5), 1);
  EXPECT_EQ(clip_factor(5, 5), 1);  // the reference clips here too, by a factor of one
  EXPECT_EQ(clip_factor(10, 5), 0.5);
  EXPECT_EQ(clip_factor(0, 5), 1);
}

TEST(Clip, WithoutALimitLeavesEveryNorm) {
  EXPECT_EQ(clip_factor(1e30, 0), 1);
  EXPECT_EQ(clip_factor(1e30, -1), 1);
}

TEST(Clip, CountsAnIsotropicPrecisionOncePerCoordinate) {
  const Message isotropic(V{1, 2, 3, 4}, 2.0f);
  EXPECT_EQ(joint_norm(isotropic), joint_norm(to_diagonal(isotropic)));
  EXPECT_DOUBLE_EQ(joint_norm(isotropic), std::sqrt(1 + 4 + 9 + 16 + 4 * 4.0));
}

TEST(Clip, CountsWhatIsOffAMatrixsDiagonalTwice) {
  // [[1, 2], [2, 3]] has a Frobenius norm of sqrt(1 + 4 + 4 + 9).
  const Message delta(V{4, 0}, Packed<V>{{1, 2, 3}});
  EXPECT_DOUBLE_EQ(joint_norm(delta), std::sqrt(16 + 18.0));
}

TEST(Clip, SumsEveryElementWhateverTheLength) {
  for (std::size_t d = 0; d < 40; ++d) {
    EXPECT_DOUBLE_EQ(joint_norm(Message(V(d, 1), V(d, 2))), std::sqrt(5.0 * double(d)));
  }
}

TEST(Clip, NeitherOverflowsNorLosesFloatsAtTheirEnds) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_DOUBLE_EQ(joint_norm(Message(V{largest}, 0.0f)), double(largest));
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_DOUBLE_EQ(joint_norm(Message(V{smallest}, 0.0f)), double(smallest));
}

TEST(Clip, MakesNothingFiniteOutOfNanOrInfinity) {
  EXPECT_TRUE(std::isnan(joint_norm(Message(V{1, NAN}, 0.0f))));
  EXPECT_TRUE(std::isinf(joint_norm(Message(V{1, 2}, -INFINITY))));
}

}  // namespace
}  // namespace fedep
