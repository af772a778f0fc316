// Many gradient-free steps at once against the same steps one by one, in double.

#include "fedep/sim/chain/free_steps.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

constexpr std::size_t kWidth = 70;  // more than one block, and no multiple of it
const SgdNumbers kNumbers{.lr = 0.3f, .momentum = 0.9f, .per_example = 0.05f};

struct State {
  std::vector<double> theta, momentum, sum;
};

class FreeSteps : public testing::TestWithParam<std::size_t> {
 protected:
  FreeSteps() {
    for (std::size_t i = 0; i < kWidth; ++i) {
      theta_.push_back(1.0f - 0.03f * float(i));
      momentum_.push_back(0.01f * float(i % 7) - 0.02f);
      eta_.push_back(0.5f * float(i % 5));
      lambda_.push_back(0.5f + 0.1f * float(i));
    }
  }

  FreeMap map_of(std::size_t steps) const {
    FreeMap map;
    for (std::size_t k = 0; k < steps; ++k) map = next(map, kNumbers, double(lambda_[3]));
    return map;
  }

  State one_by_one(std::size_t steps, bool isotropic) const {
    State state{{theta_.begin(), theta_.end()},
                {momentum_.begin(), momentum_.end()},
                std::vector<double>(kWidth, 2.0)};
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < kWidth; ++i) {
        const double lambda = double(lambda_[isotropic ? 3 : i]);
        state.momentum[i] =
            double(kNumbers.momentum) * state.momentum[i] +
            (lambda * state.theta[i] - double(eta_[i])) * double(kNumbers.per_example);
        state.theta[i] -= double(kNumbers.lr) * state.momentum[i];
        state.sum[i] += state.theta[i];
      }
    }
    return state;
  }

  std::vector<float> theta_, momentum_, eta_, lambda_;
};

TEST_P(FreeSteps, AreTheStepsOneByOneWhereLambdaIsOneNumber) {
  const State expected = one_by_one(GetParam(), true);
  const double lambda = double(lambda_[3]), k = double(GetParam());
  const FreeMap map = map_of(GetParam());
  for (std::size_t i = 0; i < kWidth; ++i) {
    const double theta = double(theta_[i]), m = double(momentum_[i]);
    const double r = lambda * theta - double(eta_[i]);
    EXPECT_NEAR(theta - map.by_r * r - map.by_m * m, expected.theta[i], 1e-12) << i;
    EXPECT_NEAR(map.m_by_r * r + map.m_by_m * m, expected.momentum[i], 1e-12) << i;
    EXPECT_NEAR(k * theta - map.sum_by_r * r - map.sum_by_m * m, expected.sum[i] - 2, 1e-11) << i;
  }
}

TEST_P(FreeSteps, MayFollowOneDownAGradient) {
  const double lambda = double(lambda_[3]), n = double(kNumbers.per_example);
  const GradientMap map =
      with_gradient(map_of(GetParam()), map_of(GetParam() + 1), GetParam(), kNumbers, lambda);
  EXPECT_EQ(map.steps, float(GetParam() + 1));
  const std::vector<float> theta = theta_, momentum = momentum_;
  const auto gradient = [](std::size_t i) { return 0.1 * double(i % 4) - 0.15; };
  for (std::size_t i = 0; i < kWidth; ++i) {
    momentum_[i] = float(double(kNumbers.momentum) * double(momentum[i]) + gradient(i) +
                         (lambda * double(theta[i]) - double(eta_[i])) * n);
    theta_[i] -= kNumbers.lr * momentum_[i];
  }
  const State expected = one_by_one(GetParam(), true);
  for (std::size_t i = 0; i < kWidth; ++i) {
    const double x = double(theta[i]), m = double(momentum[i]), g = gradient(i);
    const double r = lambda * x - double(eta_[i]);
    const auto by = [&](float of_r, float of_m, float of_g) {
      return double(of_r) * r + double(of_m) * m + double(of_g) * g;
    };
    EXPECT_NEAR(x - by(map.by_r, map.by_m, map.by_g), expected.theta[i], 2e-6) << i;
    EXPECT_NEAR(by(map.m_by_r, map.m_by_m, map.m_by_g), expected.momentum[i], 2e-6) << i;
    const double sum = expected.sum[i] - 2 + double(theta_[i]);  // with the gradient's step
    EXPECT_NEAR(double(map.steps) * x - by(map.sum_by_r, map.sum_by_m, map.sum_by_g), sum,
                2e-6 * double(1 + GetParam()))
        << i;
  }
}

// Two samples are iterates, one is the average of a stretch.
TEST_P(FreeSteps, AreTheStepsOneByOneOnAWayWithSamples) {
  constexpr float kDecay = 0.25f;
  const std::size_t last = GetParam();
  const std::vector<FreeStretch> way{{.steps = 3, .sample = 1},
                                     {.steps = 0, .new_sum = true},
                                     {.steps = 4, .sample = 2, .averaged = 4},
                                     {.steps = 5, .sample = 3},
                                     {.steps = 0, .new_sum = true},
                                     {.steps = last}};
  std::vector<float> theta(kWidth), sum(kWidth), mean(kWidth), squares(kWidth), alone(kWidth);
  travel(kNumbers, way, kWidth, {eta_.data(), lambda_.data()}, kDecay, theta_.data(),
         {theta.data(), sum.data(), mean.data(), squares.data()});
  travel(kNumbers, way, kWidth, {eta_.data(), lambda_.data()}, kDecay, theta_.data(),
         {nullptr, nullptr, alone.data(), nullptr});
  EXPECT_EQ(alone, mean);
  for (float& x : lambda_) x += kDecay;
  std::fill(momentum_.begin(), momentum_.end(), 0.0f);
  const auto at = [&](std::size_t steps) { return one_by_one(steps, false); };
  const State third = at(3), seventh = at(7), twelfth = at(12), end = at(12 + last);
  for (std::size_t i = 0; i < kWidth; ++i) {
    const std::array samples{third.theta[i], (seventh.sum[i] - third.sum[i]) / 4, twelfth.theta[i]};
    const double middle = (samples[0] + samples[1] + samples[2]) / 3;
    double spread = 0;
    for (const double x : samples) spread += (x - middle) * (x - middle);
    EXPECT_NEAR(double(theta[i]), end.theta[i], 2e-6) << i;
    EXPECT_NEAR(double(sum[i]), end.sum[i] - twelfth.sum[i], 2e-6 * double(1 + last)) << i;
    EXPECT_NEAR(double(mean[i]), middle, 2e-6) << i;
    EXPECT_NEAR(double(squares[i]), spread, 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(OfAnyNumber, FreeSteps, testing::Values(0, 1, 2, 25));

TEST(FreeMap, WithoutAPriorOnlyLetsTheMomentumDie) {
  FreeMap map;
  for (int k = 0; k < 3; ++k) map = next(map, {.lr = 2, .momentum = 0.5f, .per_example = 1}, 0);
  EXPECT_DOUBLE_EQ(map.m_by_m, 0.125);
  EXPECT_DOUBLE_EQ(map.by_m, 2 * (0.5 + 0.25 + 0.125));
}

}  // namespace
}  // namespace fedep
