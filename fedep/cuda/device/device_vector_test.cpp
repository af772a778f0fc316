// DeviceVector against HostVector, operator by operator. Element by element the bits are the same
// (the kernels are compiled without contraction); only log is the GPU's own.

#include "fedep/cuda/device/device_vector.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class DeviceVectors : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }

  V normal(std::uint32_t step) const {
    V x(GetParam());
    fill_normal({.seed = 11, .step = step}, x.span());
    return x;
  }
  V positive(std::uint32_t step) const {
    V x(GetParam());
    fill_uniform({.seed = 12, .step = step}, x.span());
    return x + 0.25f;
  }
};

TEST_P(DeviceVectors, ComeBackAsTheyWent) {
  const V a = normal(1);
  const DeviceVector there = to_device(a);
  EXPECT_EQ(there.size(), a.size());
  EXPECT_EQ(to_host(there), a);
  DeviceVector copy = there;
  EXPECT_EQ(to_host(copy), a);
  copy = constant_like(copy, 2.0f);
  EXPECT_EQ(to_host(copy), constant_like(a, 2.0f));
  EXPECT_EQ(to_host(there), a);  // a copy is its own
  DeviceVector other(3);
  other = there;
  EXPECT_EQ(to_host(other), a);
  other = *&other;
  EXPECT_EQ(to_host(other), a);
}

TEST_P(DeviceVectors, HaveTheHostsBitsInEveryOperator) {
  const V a = normal(1), b = positive(2);
  const DeviceVector x = to_device(a), y = to_device(b);
  EXPECT_EQ(to_host(x + y), a + b);
  EXPECT_EQ(to_host(x - y), a - b);
  EXPECT_EQ(to_host(x * y), a * b);
  EXPECT_EQ(to_host(x / y), a / b);
  EXPECT_EQ(to_host(0.3f * x), 0.3f * a);
  EXPECT_EQ(to_host(x / 0.3f), a / 0.3f);
  EXPECT_EQ(to_host(x + 0.3f), a + 0.3f);
  EXPECT_EQ(to_host(sqrt(y)), sqrt(b));
  EXPECT_EQ(to_host(clamp(x, -0.5f, 0.7f)), clamp(a, -0.5f, 0.7f));
  EXPECT_EQ(to_host(0.1f * x + y), 0.1f * a + b);
  const V logarithm = log(b), there = to_host(log(y));
  for (std::size_t i = 0; i < b.size(); ++i) {
    EXPECT_NEAR(there[i], logarithm[i], 3e-7 * (1 + std::fabs(logarithm[i]))) << i;
  }
}

TEST_P(DeviceVectors, ReduceToTheHostsNumbersAndToTheSameBitsEveryTime) {
  const V a = normal(1), b = normal(2);
  const DeviceVector x = to_device(a), y = to_device(b);
  const double size = double(a.size());
  EXPECT_NEAR(sum(x), sum(a), 1e-12 * size);
  EXPECT_NEAR(dot(x, y), dot(a, b), 1e-12 * size);
  EXPECT_EQ(min_value(x), min_value(a));
  EXPECT_TRUE(all_finite(x));
  const double first_sum = sum(x), first_dot = dot(x, y);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sum(x), first_sum);
    EXPECT_EQ(dot(x, y), first_dot);
  }
}

TEST_P(DeviceVectors, SeeNanAndInfinityWhereverTheyStand) {
  const std::size_t size = GetParam();
  for (const std::size_t where : {std::size_t(0), size / 2, size - 1}) {
    V a = normal(1);
    a[where] = kNan;
    EXPECT_TRUE(std::isnan(min_value(to_device(a)))) << where;
    EXPECT_FALSE(all_finite(to_device(a))) << where;
    a[where] = -kInfinity;
    EXPECT_EQ(min_value(to_device(a)), double(-kInfinity)) << where;
    EXPECT_FALSE(all_finite(to_device(a))) << where;
  }
}

TEST_P(DeviceVectors, MakeMessagesThatObeyTheHostsArithmetic) {
  const Message q(normal(1), positive(2)), p(normal(3), 2.5f);
  const DeviceMessage there = to_device(q), other = to_device(p);
  EXPECT_EQ(to_host(there), q);
  EXPECT_EQ(to_host(other), p);
  EXPECT_EQ(to_host(product(there, other)), product(q, p));
  EXPECT_EQ(to_host(quotient(other, there)), quotient(p, q));
  EXPECT_EQ(to_host(quotient(other, other)), quotient(p, p));
  EXPECT_EQ(to_host(power(there, 0.3f)), power(q, 0.3f));
  EXPECT_EQ(to_host(mean(there)), mean(q));
  EXPECT_EQ(to_host(mean(other)), mean(p));
  EXPECT_EQ(to_host(variance(there)), variance(q));
  EXPECT_TRUE(is_proper(there));
  EXPECT_FALSE(is_proper(quotient(other, other)));
  EXPECT_NEAR(kl(there, other), kl(q, p), 1e-6 * (1 + kl(q, p)));
}

// One, not a multiple of anything, and more than one grid's stride.
INSTANTIATE_TEST_SUITE_P(Sizes, DeviceVectors, testing::Values(1, 255, 4099, 1300021));

TEST(DeviceVectorErrors, SizesMustAgree) {
  if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  const DeviceVector a(3), b(4);
  EXPECT_THROW(a + b, InputError);
  EXPECT_THROW(dot(a, b), InputError);
}

TEST(DeviceVectorErrors, NothingHasTheLeastOfNothing) {
  if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  const DeviceVector none;
  EXPECT_EQ(sum(none), 0);
  EXPECT_EQ(min_value(none), HUGE_VAL);
  EXPECT_TRUE(all_finite(none));
  EXPECT_EQ(to_host(none + none).size(), 0u);
}

}  // namespace
}  // namespace fedep
