#include "fedep/metric/regression.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

double h(std::int64_t i) {
  return static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0;
}

const double kLogTwoPi = std::log(2 * std::numbers::pi);

TEST(RegressionMetrics, OfUnitNoiseAreTiedToEachOther) {
  RegressionMetrics metrics;
  for (int i = 0; i < 50; ++i) {
    metrics.add(std::vector<double>{h(i)}, std::vector<float>{static_cast<float>(h(i + 300))});
  }
  EXPECT_EQ(metrics.count(), 50);
  EXPECT_NEAR(metrics.nll(), (kLogTwoPi + metrics.rmse() * metrics.rmse()) / 2, 1e-12);
}

TEST(RegressionMetrics, AreBestAtTheTrueVariance) {
  const std::vector<double> means{0, 0};
  const std::vector<float> targets{-3, 3};
  const auto nll = [&](double variance) {
    RegressionMetrics metrics;
    metrics.add(means, std::vector<double>{variance, variance}, targets);
    return metrics.nll();
  };
  EXPECT_LT(nll(9), nll(8.9));
  EXPECT_LT(nll(9), nll(9.1));
  EXPECT_NEAR(nll(9), (kLogTwoPi + std::log(9.0) + 1) / 2, 1e-14);
}

TEST(RegressionMetrics, GiveTheSameBitsInChunksMergedAndAtOnce) {
  std::vector<double> means;
  std::vector<double> variances;
  std::vector<float> targets;
  for (int i = 0; i < 100; ++i) {
    means.push_back(1e6 * h(i));
    variances.push_back(0.1 + h(i + 1000));
    targets.push_back(static_cast<float>(h(i + 2000)));
  }
  RegressionMetrics once;
  once.add(means, variances, targets);
  RegressionMetrics merged;
  for (std::size_t begin = 0; begin < 100; begin += 20) {
    RegressionMetrics part;
    part.add(std::span(means).subspan(begin, 20), std::span(variances).subspan(begin, 20),
             std::span(targets).subspan(begin, 20));
    part.merge(merged);
    merged = part;
  }
  EXPECT_EQ(merged.rmse(), once.rmse());
  EXPECT_EQ(merged.nll(), once.nll());
  EXPECT_EQ(merged.error_ratio(), once.error_ratio());
}

TEST(RegressionMetrics, SayHowErrorsCompareWithWhatWasPredicted) {
  RegressionMetrics metrics;
  metrics.add(std::vector<double>{0, 0}, std::vector<double>{1, 36}, std::vector<float>{2, 12});
  EXPECT_EQ(metrics.error_ratio(), 2);
}

// prediction 3 h(i), target 3 h(900+i) in float32, i < 200; scikit-learn 1.9.1's
// root_mean_squared_error.
TEST(RegressionMetrics, AgreeWithScikitLearn) {
  std::vector<double> means;
  std::vector<float> targets;
  for (int i = 0; i < 200; ++i) {
    means.push_back(3 * h(i));
    targets.push_back(static_cast<float>(3 * h(900 + i)));
  }
  RegressionMetrics metrics;
  metrics.add(means, targets);
  EXPECT_NEAR(metrics.rmse(), 1.1285968149755878, 1e-12);
}

TEST(RegressionMetrics, HandleTheEdges) {
  RegressionMetrics metrics;
  EXPECT_TRUE(std::isnan(metrics.rmse()));
  EXPECT_TRUE(std::isnan(metrics.nll()));
  const std::vector<double> mean{1};
  const std::vector<float> target{1};
  EXPECT_THROW(metrics.add(mean, std::vector<double>{0}, target), InputError);
  EXPECT_THROW(metrics.add(mean, std::vector<double>{1, 1}, target), InputError);
  EXPECT_THROW(metrics.add(mean, std::vector<float>{}), InputError);
  metrics.add(mean, target);
  EXPECT_EQ(metrics.rmse(), 0);
  metrics.add(std::vector<double>{std::nan("")}, target);
  EXPECT_TRUE(std::isnan(metrics.rmse()));
}

}  // namespace
}  // namespace fedep
