#include "fedep/message/gaussian.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fedep/message/dense_gaussian.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<double>;
using Q = Gaussian<V>;
static_assert(Storage<HostVector<float>> && Storage<HostVector<double>>);

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

V random_vector(std::size_t d, std::uint32_t step, double low, double high) {
  Stream stream({.seed = 1, .step = step});
  V v(d);
  for (double& x : v.span()) x = low + (high - low) * stream.uniform();
  return v;
}

Q random_diagonal(std::size_t d, std::uint32_t step) {
  return {random_vector(d, 2 * step, -3, 3), random_vector(d, 2 * step + 1, 0.5, 4)};
}
Q random_isotropic(std::size_t d, std::uint32_t step) {
  return {random_vector(d, 2 * step, -3, 3), 0.5 + step};
}

void expect_near(const Q& a, const Q& b, double tolerance = 1e-12) {
  ASSERT_EQ(a.size(), b.size());
  const V la = a.lambda_full(), lb = b.lambda_full();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a.eta()[i], b.eta()[i], tolerance);
    EXPECT_NEAR(la[i], lb[i], tolerance);
  }
}

// The laws hold for every pair of families.
class Pairs : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  Q make(bool isotropic, std::uint32_t step) {
    return isotropic ? random_isotropic(7, step) : random_diagonal(7, step);
  }
  Q a = make(GetParam().first, 1), b = make(GetParam().second, 2), c = make(GetParam().first, 3);
};
INSTANTIATE_TEST_SUITE_P(Families, Pairs,
                         testing::Values(std::pair(false, false), std::pair(true, true),
                                         std::pair(false, true), std::pair(true, false)));

TEST_P(Pairs, QuotientUndoesProduct) { expect_near(quotient(product(a, b), b), a); }
TEST_P(Pairs, ProductCommutesAndAssociates) {
  expect_near(product(a, b), product(b, a), 0);
  expect_near(product(product(a, b), c), product(a, product(b, c)));
}
TEST_P(Pairs, PowerIsRepeatedProduct) {
  expect_near(power(product(a, b), 3.0), product(product(power(a, 3.0), power(b, 2.0)), b));
  expect_near(power(a, 0.0), flat_like(a.eta(), a.family()), 0);
  expect_near(product(a, power(a, -1.0)), flat_like(a.eta(), a.family()));
}
TEST_P(Pairs, KlIsPositiveZeroOnlyToItselfAndMatchesItsParts) {
  EXPECT_GT(kl(a, b), 0);
  EXPECT_NEAR(kl(a, a), 0, 1e-12);
  // KL(q‖p) = -H(q) - E_q[log p]
  double cross = 0;
  const V mq = mean(a), vq = variance(a), mp = mean(b), lp = b.lambda_full();
  for (std::size_t i = 0; i < a.size(); ++i) {
    cross += 0.5 * std::log(2 * std::numbers::pi / lp[i]) +
             0.5 * lp[i] * (vq[i] + (mq[i] - mp[i]) * (mq[i] - mp[i]));
  }
  EXPECT_NEAR(kl(a, b), cross - entropy(a), 1e-10);
}

TEST(Gaussian, ProductOfIsotropicStaysIsotropic) {
  const Q q = product(random_isotropic(3, 1), random_isotropic(3, 2));
  EXPECT_TRUE(q.isotropic());
  EXPECT_DOUBLE_EQ(q.lambda_scalar(), 1.5 + 2.5);
}

TEST(Gaussian, ProductOfDensitiesIsTheDensityOfTheProduct) {
  const Q a = random_diagonal(4, 1), b = random_diagonal(4, 2);
  const auto log_density = [](const Q& q, const V& x) {
    return dot(q.eta(), x) - 0.5 * dot(q.lambda_full() * x, x);
  };
  const V x = random_vector(4, 50, -2, 2);
  EXPECT_NEAR(log_density(product(a, b), x), log_density(a, x) + log_density(b, x), 1e-12);
}

TEST(Gaussian, MeanAndVarianceComeBackFromNaturalForm) {
  const V mu{1.0, -2.0, 3.0};
  const Q q = from_mean(mu, V{2.0, 4.0, 8.0});
  EXPECT_EQ(mean(q), mu);
  EXPECT_EQ(variance(q), (V{0.5, 0.25, 0.125}));
}

TEST(Gaussian, EntropyOfAStandardNormalIsTheTextbookNumber) {
  EXPECT_NEAR(entropy(Q(V{0.0}, 1.0)), 1.4189385332046727, 1e-15);  // ½ log(2πe)
  EXPECT_NEAR(entropy(Q(V{0.0, 0.0}, V{1.0, 4.0})), 2 * 1.4189385332046727 - std::log(2.0), 1e-14);
}

TEST(Gaussian, SamplesHaveItsMomentsAndNoiseZeroGivesTheMean) {
  const Q q = random_diagonal(3, 4);
  EXPECT_EQ(sample(q, V(3, 0.0)), mean(q));
  const int n = 40000;
  V total(3), squares(3);
  Stream stream({.seed = 11});
  for (int i = 0; i < n; ++i) {
    const V x = sample(q, V{stream.normal(), stream.normal(), stream.normal()}) - mean(q);
    total = total + x;
    squares = squares + x * x;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double v = variance(q)[i];
    EXPECT_NEAR(total[i] / n, 0, 5 * std::sqrt(v / n));
    EXPECT_NEAR(squares[i] / n, v, 5 * v * std::sqrt(2.0 / n));
  }
}

TEST(Gaussian, ProperMeansPositiveAndFinite) {
  EXPECT_TRUE(is_proper(Q(V{1.0}, 2.0)));
  EXPECT_FALSE(is_proper(Q(V{1.0}, 0.0)));
  EXPECT_FALSE(is_proper(Q(V{1.0}, -1.0)));
  EXPECT_FALSE(is_proper(Q(V{kNaN}, 1.0)));
  EXPECT_FALSE(is_proper(Q(V{1.0, 1.0}, V{1.0, kNaN})));
  EXPECT_FALSE(is_proper(Q(V{1.0, 1.0}, V{1.0, kInfinity})));
  EXPECT_FALSE(is_proper(Q(V{1.0, 1.0}, V{-1.0, 1.0})));
}

TEST(Gaussian, WhatNeedsAProperMessageSaysWhatIsWrong) {
  try {
    mean(Q(V{1.0, 1.0}, V{3.0, -0.5}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "mean: every precision of message must be positive, but is -0.5 at its smallest");
  }
  EXPECT_THROW(entropy(Q(V{1.0}, 0.0)), InputError);
  EXPECT_THROW(sample(Q(V{1.0}, -1.0), V{0.0}), InputError);
  EXPECT_THROW(kl(Q(V{1.0}, 1.0), Q(V{1.0}, 0.0)), InputError);
}

TEST(Gaussian, SizesMustAgree) {
  EXPECT_THROW(Q(V{1.0, 2.0}, V{1.0}), InputError);
  EXPECT_THROW(product(Q(V{1.0}, 1.0), Q(V{1.0, 2.0}, 1.0)), InputError);
  EXPECT_THROW(sample(Q(V{1.0}, 1.0), V{0.0, 0.0}), InputError);
}

TEST(Gaussian, LambdaSpanIsWhatTravels) {
  EXPECT_EQ(Q(V(5), 2.0).lambda_span().size(), 1u);
  EXPECT_EQ(Q(V(5), V(5, 2.0)).lambda_span().size(), 5u);
}

TEST(DenseGaussian, AgreesWithTheMeanFieldMessageItCameFrom) {
  const Q a = random_diagonal(4, 1), b = random_isotropic(4, 2);
  const auto dense = product(to_dense(a), to_dense(b));
  const auto mu = mean(dense);
  const Q q = product(a, b);
  for (Eigen::Index i = 0; i < 4; ++i) {
    EXPECT_NEAR(mu[i], mean(q)[std::size_t(i)], 1e-12);
    EXPECT_NEAR(covariance(dense)(i, i), variance(q)[std::size_t(i)], 1e-12);
  }
  EXPECT_TRUE(quotient(dense, to_dense(b)).lambda.isApprox(to_dense(a).lambda));
  EXPECT_TRUE(power(dense, 2.0).eta.isApprox(product(dense, dense).eta));
}

TEST(DenseGaussian, MomentsComeBack) {
  Eigen::Matrix2d sigma;
  sigma << 2, -0.7, -0.7, 1;
  const auto q = dense_from_moments<double, 2>({1, -3}, sigma);
  EXPECT_TRUE(mean(q).isApprox(Eigen::Vector2d(1, -3)));
  EXPECT_TRUE(covariance(q).isApprox(sigma));
}

TEST(DenseGaussian, RefusesWhatIsNotPositiveDefinite) {
  Eigen::Matrix2d indefinite;
  indefinite << 1, 2, 2, 1;
  EXPECT_THROW((dense_from_moments<double, 2>({0, 0}, indefinite)), InputError);
  EXPECT_THROW(mean(to_dense(Q(V{1.0}, -1.0))), InputError);
}

}  // namespace
}  // namespace fedep
