#include "fedep/optim/average_element.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

// Each gain leaves the others' weights 1 - gain of what they were.
TEST(AverageElement, IsTheWeightedMeanAndTheVarianceAboutIt) {
  Stream stream({.seed = 5});
  std::vector<double> x, weights;
  float mean = 77, variance = 99;  // of nothing: the first gain is 1
  for (int t = 0; t < 40; ++t) {
    const double gain = t == 0 ? 1.0 : 0.02 + 0.5 * stream.uniform();
    for (double& weight : weights) weight *= 1 - gain;
    weights.push_back(gain);
    x.push_back(3 + stream.normal());
    variance = averaged_variance(float(gain), float(x.back()), mean, variance);
    mean = averaged(float(gain), float(x.back()), mean);
    double expected = 0, spread = 0;
    for (std::size_t i = 0; i < x.size(); ++i) expected += weights[i] * x[i];
    for (std::size_t i = 0; i < x.size(); ++i) {
      spread += weights[i] * (x[i] - expected) * (x[i] - expected);
    }
    ASSERT_NEAR(mean, expected, 1e-5);
    ASSERT_NEAR(variance, spread, 1e-4 * std::max(1.0, spread));
  }
}

TEST(AverageElement, OfOneNumberVariesNot) {
  float mean = 0, variance = 0;
  for (const float gain : {1.0f, 0.5f, 0.3f}) {
    variance = averaged_variance(gain, 1.7f, mean, variance);
    mean = averaged(gain, 1.7f, mean);
    EXPECT_EQ(mean, 1.7f);
    EXPECT_EQ(variance, 0);
  }
}

TEST(AverageElement, StaysFiniteWhereARunDiverges) {
  float mean = 1, variance = 0;
  for (const float x : {1e25f, -1e30f, 1e10f, 2.0f}) {
    variance = averaged_variance(0.5f, x, mean, variance);
    mean = averaged(0.5f, x, mean);
    EXPECT_TRUE(std::isfinite(variance) && std::isfinite(mean)) << x;
  }
}

}  // namespace
}  // namespace fedep
