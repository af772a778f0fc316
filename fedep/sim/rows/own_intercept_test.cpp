// A client's own intercept given what is shared: exact for numbers, near brute force for others, N(m, τ²)
// for a client that nobody knows.
#include "fedep/sim/rows/own_intercept.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/model/linear.h"

namespace fedep {
namespace {

// weight [1], bias, log τ, log σ
SharedExtras extras(bool noise) {
  return extras_of(make_linear({.features = 1,
                                .outputs = 1,
                                .target = TargetKind::real,
                                .log_site_sd = true,
                                .log_noise = noise})
                       ->layout());
}

// Mean and variance of b given θ, by a sum over b.
InterceptGiven brute_force(const GlmRows& rows, const std::vector<float>& theta) {
  const double m = double(theta[1]), tau = std::exp(double(theta[2]));
  double mass = 0, first = 0, second = 0;
  for (double b = m - 12 * tau; b <= m + 12 * tau; b += 0.002 * tau) {
    double log_density = -0.5 * (b - m) * (b - m) / (tau * tau);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      log_density += rows.likelihood(i).log_density(b + rows.row(i)[0] * double(theta[0]));
    }
    const double part = std::exp(log_density);
    mass += part;
    first += part * b;
    second += part * b * b;
  }
  return {first / mass, second / mass - first * first / (mass * mass)};
}

TEST(OwnIntercept, OfNumbersIsExactWhereverItIsAskedFor) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 12, .columns = 2, .seed = 3});
  const std::vector<float> here{0.5f, 0.2f, -0.5f, 0.1f};
  const OwnIntercept own = own_intercept(rows, extras(true), here);
  for (const std::vector<float>& theta :
       {here, {-0.7f, 1.0f, 0.6f, -0.4f}, {0.1f, 0.0f, -2.0f, 0.9f}}) {
    rows.noise = std::exp(double(theta[3]));
    const InterceptGiven exact = brute_force(rows, theta);
    const InterceptGiven came = intercept_given(own, TargetKind::real, extras(true), theta);
    EXPECT_NEAR(came.mean, exact.mean, 1e-5);
    EXPECT_NEAR(came.variance / exact.variance, 1, 1e-4);
  }
}

TEST(OwnIntercept, OfYesNoAndCountsHasTheMomentsAtItsPlaceAndFollowsTheta) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    const TargetKind target =
        outcome == GlmOutcome::yes_no ? TargetKind::binary : TargetKind::count;
    for (const std::size_t n : {1u, 6u, 80u}) {
      const GlmRows rows = random_rows({.outcome = outcome, .rows = n, .columns = 2, .seed = n});
      const std::vector<float> here{0.5f, 0.2f, -0.3f};
      const OwnIntercept own = own_intercept(rows, extras(false), here);
      // There it is EP's answer of one dimension; some way off a little less.
      for (const auto& [theta, tolerance] :
           {std::pair{here, 0.02}, std::pair{std::vector<float>{0.6f, 0.0f, -0.6f}, 0.1}}) {
        const InterceptGiven exact = brute_force(rows, theta);
        const InterceptGiven came = intercept_given(own, target, extras(false), theta);
        EXPECT_LT(std::abs(came.mean - exact.mean) / std::sqrt(exact.variance), tolerance) << n;
        EXPECT_NEAR(came.variance / exact.variance, 1, 3 * tolerance) << n;
      }
    }
  }
}

TEST(OwnIntercept, OfAClientThatNobodyKnowsIsOneOfMany) {
  const OwnIntercepts nobody;
  const std::vector<float> theta{0.5f, 0.2f, -0.3f};
  const InterceptGiven b =
      intercept_given(nobody.of("new"), TargetKind::binary, extras(false), theta);
  EXPECT_NEAR(b.mean, 0.2, 1e-6);
  EXPECT_NEAR(b.variance, std::exp(-0.6), 1e-6);
  EXPECT_FALSE(nobody.knows("new"));
}

TEST(OwnIntercept, WithoutRowsIsOneOfMany) {
  GlmRows rows{.client = "empty", .columns = 2};
  const std::vector<float> theta{0.5f, 0.2f, -0.3f};
  const OwnIntercept own = own_intercept(rows, extras(false), theta);
  EXPECT_EQ(own.precision, 0);
  EXPECT_EQ(own.coupling, std::vector<double>{0});
}

}  // namespace
}  // namespace fedep
