#include "fedep/metric/probability.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Softmax, SumsToOneAndIgnoresAShiftOfALine) {
  const std::vector<float> logits{1, 2, 4, -3, 0, 0.5F};
  std::vector<float> shifted = logits;
  for (std::size_t i = 0; i < 3; ++i) shifted[i] += 16;  // exact in float
  const std::vector<double> p = softmax(logits, 3);
  EXPECT_EQ(p, softmax(shifted, 3));
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-15);
  EXPECT_NEAR(p[3] + p[4] + p[5], 1, 1e-15);
  EXPECT_NEAR(p[2] / p[1], std::exp(2), 1e-14);
}

TEST(Softmax, OfTwoIsTheSigmoidOfTheDifference) {
  for (const float logit : {-80.0F, -3.0F, 0.0F, 0.25F, 40.0F}) {
    const std::vector<double> p = softmax(std::vector<float>{0, logit}, 2);
    EXPECT_NEAR(p[1], sigmoid(logit), 1e-16 + 1e-14 * p[1]);
  }
}

TEST(Softmax, StaysFiniteForHugeLogits) {
  EXPECT_EQ(softmax(std::vector<float>{3e38F, -3e38F}, 2), (std::vector<double>{1, 0}));
  EXPECT_EQ(softmax(std::vector<float>{5, -kInfinity}, 2), (std::vector<double>{1, 0}));
  EXPECT_TRUE(softmax({}, 3).empty());
}

TEST(Softmax, OfALineThatIsNotFiniteIsNaNAndOnlyThere) {
  for (const float bad : {kInfinity, std::nanf("")}) {
    const std::vector<double> p = softmax(std::vector<float>{0, bad, 1, 1}, 2);
    EXPECT_TRUE(std::isnan(p[0]) && std::isnan(p[1]));
    EXPECT_EQ(p[2], 0.5);
  }
}

TEST(Softmax, RefusesAnIncompleteLine) {
  EXPECT_THROW(softmax(std::vector<float>{1, 2, 3}, 2), InputError);
  EXPECT_THROW(softmax(std::vector<float>{1, 2, 3}, 0), InputError);
}

TEST(Sigmoid, IsSymmetricAndKeepsSmallProbabilities) {
  EXPECT_EQ(sigmoid(0.0), 0.5);
  for (const double logit : {0.1, 1.0, 5.0, 30.0}) {
    EXPECT_NEAR(sigmoid(logit) + sigmoid(-logit), 1, 1e-15);
  }
  EXPECT_NEAR(sigmoid(-100.0) / std::exp(-100.0), 1, 1e-14);
  EXPECT_EQ(sigmoid(1e9), 1.0);
  EXPECT_EQ(sigmoid(-1e9), 0.0);
  EXPECT_TRUE(std::isnan(sigmoid(std::nan(""))));
  EXPECT_EQ(sigmoid(std::vector<float>{0, 0}), (std::vector<double>{0.5, 0.5}));
}

TEST(NegativeLog, IsFiniteOnTheWholeInterval) {
  EXPECT_EQ(negative_log(1), 0);
  EXPECT_FALSE(std::signbit(negative_log(1)));
  EXPECT_EQ(negative_log(0.25), std::log(4.0));
  EXPECT_EQ(negative_log(0), 52 * std::log(2.0));
  EXPECT_EQ(negative_log(1 + 1e-7), 0);
  EXPECT_TRUE(std::isnan(negative_log(std::nan(""))));
}

TEST(Largest, IsTheFirstOfEquals) {
  EXPECT_EQ(largest(std::vector<double>{0.1, 0.4, 0.4, 0.1}), 1);
  EXPECT_EQ(largest(std::vector<double>{0.5}), 0);
  EXPECT_EQ(largest(std::vector<double>{}), std::nullopt);
  EXPECT_EQ(largest(std::vector<double>{0.9, std::nan("")}), std::nullopt);
}

TEST(ProbabilityMean, AveragesDrawByDraw) {
  ProbabilityMean mean(2);
  mean.add(std::vector<double>{1.0, 0.0});
  EXPECT_EQ(mean.value(), (std::vector<double>{1.0, 0.0}));
  mean.add(std::vector<double>{0.5, 0.5});
  EXPECT_EQ(mean.value(), (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(mean.draws(), 2);
}

TEST(ProbabilityMean, OfEqualDrawsIsThatDrawAndNeverAboveOne) {
  ProbabilityMean mean(3);
  for (int i = 0; i < 10; ++i) mean.add(std::vector<double>{1.0, 0.7, 0.0});
  EXPECT_EQ(mean.value()[0], 1.0);
  EXPECT_NEAR(mean.value()[1], 0.7, 1e-15);
  EXPECT_EQ(mean.value()[2], 0.0);
}

TEST(ProbabilityMean, WithoutADrawDoesNotExist) {
  EXPECT_TRUE(std::isnan(ProbabilityMean(1).value()[0]));
  ProbabilityMean mean(2);
  EXPECT_THROW(mean.add(std::vector<double>{1.0}), InputError);
  EXPECT_EQ(mean.draws(), 0);
}

TEST(CheckProbabilities, LetsRoundingAndNaNThroughAndLogitsNot) {
  EXPECT_NO_THROW(check_probabilities("f", std::vector<double>{0, 1, 1 + 1e-7, std::nan("")}));
  EXPECT_THROW(check_probabilities("f", std::vector<double>{0.5, 1.5}), InputError);
  EXPECT_THROW(check_probabilities("f", std::vector<double>{-2}), InputError);
}

}  // namespace
}  // namespace fedep
