#include "fedep/page/report/posterior_spread.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

Tensor tensor(std::string name, std::vector<float> values) {
  const auto size = std::int64_t(values.size());
  return {std::move(name), {size}, Array(std::move(values))};
}

// One precision for all weights, as checkpoints have it: a number, of no dimension.
Tensor one_precision(float value) { return {"lambda", {}, Array(std::vector<float>{value})}; }

SafetensorsFile checkpoint(std::vector<Tensor> tensors) {
  return {.tensors = std::move(tensors), .metadata = {{"round", "12"}}, .origin = "c.safetensors"};
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
}

TEST(PosteriorSpreads, CountEveryWeightOnceInTheBinThatHoldsIt) {
  std::vector<float> lambda;
  for (int i = 0; i < 1000; ++i) lambda.push_back(std::pow(10.f, float(i) / 250));  // 1 … 1e4
  const PosteriorSpread spread = posterior_spread(
      checkpoint({tensor("eta.a", std::vector<float>(1000, 1)), tensor("lambda.a", lambda)}));
  EXPECT_EQ(spread.round, 12);
  EXPECT_EQ(spread.weights, 1000);
  ASSERT_EQ(spread.edges.size(), kSpreadBins + 1);
  ASSERT_EQ(spread.layers.size(), 1u);
  const LayerSpread& layer = spread.layers[0];
  EXPECT_EQ(layer.name, "a");
  EXPECT_EQ(sum(layer.counts), 1000);
  EXPECT_DOUBLE_EQ(layer.high, 1);  // 1 / sqrt(1)
  // Standard deviations are spaced evenly in their logarithm, so are the bins.
  for (const std::int64_t count : layer.counts) EXPECT_NEAR(double(count), 25, 1);
  for (std::size_t i = 0; i < kSpreadBins; ++i) {
    EXPECT_NEAR(std::log(spread.edges[i + 1] / spread.edges[i]),
                std::log(spread.edges.back() / spread.edges.front()) / double(kSpreadBins), 1e-9);
  }
}

TEST(PosteriorSpreads, ShareTheirBinsAmongLayers) {
  const PosteriorSpread spread = posterior_spread(
      checkpoint({tensor("lambda.wide", {1, 1e4f}), tensor("lambda.narrow", {1, 1, 1}),
                  tensor("eta.wide", {0, 0})}));
  EXPECT_DOUBLE_EQ(spread.edges.front(), 0.01);
  EXPECT_DOUBLE_EQ(spread.edges.back(), 1);
  EXPECT_EQ(spread.layers[0].counts.front(), 1);
  EXPECT_EQ(spread.layers[0].counts.back(), 1);
  EXPECT_EQ(spread.layers[1].counts.back(), 3);
}

TEST(PosteriorSpreads, CountPrecisionsThatAreNone) {
  const float infinity = std::numeric_limits<float>::infinity();
  const PosteriorSpread spread = posterior_spread(
      checkpoint({tensor("lambda.a", {4, -1, 0, NAN, infinity}), tensor("lambda.b", {-2})}));
  EXPECT_EQ(spread.layers[0].improper, 4);
  EXPECT_EQ(sum(spread.layers[0].counts), 1);
  EXPECT_DOUBLE_EQ(spread.layers[0].median, 0.5);
  EXPECT_EQ(spread.layers[1].improper, 1);
  EXPECT_EQ(spread.improper(), 5);
  EXPECT_TRUE(std::isnan(spread.layers[1].median));
  const PosteriorSpread none = posterior_spread(checkpoint({tensor("lambda.a", {-1})}));
  EXPECT_TRUE(none.edges.empty());
}

TEST(PosteriorSpreads, OfOnePrecisionAreOneNumber) {
  const PosteriorSpread spread =
      posterior_spread(checkpoint({tensor("eta.a", {1, 2, 3}), one_precision(16)}));
  EXPECT_TRUE(spread.isotropic);
  EXPECT_DOUBLE_EQ(spread.deviation, 0.25);
  EXPECT_EQ(spread.weights, 3);
  EXPECT_TRUE(spread.layers.empty());
  EXPECT_EQ(spread.improper(), 0);
  EXPECT_TRUE(std::isnan(posterior_spread(checkpoint({one_precision(-16)})).deviation));
}

TEST(PosteriorSpreads, OfAMatrixAreItsInversesDiagonal) {
  // The inverse of [[2, 1], [1, 2]] has 2/3 on its diagonal; the third weight stands alone.
  const PosteriorSpread spread = posterior_spread(checkpoint(
      {tensor("eta.a", {1, 2}), tensor("eta.b", {3}), tensor("lambda", {2, 1, 2, 0, 0, 4})}));
  EXPECT_FALSE(spread.isotropic);
  ASSERT_EQ(spread.layers.size(), 2u);
  EXPECT_EQ(spread.layers[0].name, "a");
  EXPECT_NEAR(spread.layers[0].low, std::sqrt(2.0 / 3), 1e-6);
  EXPECT_NEAR(spread.layers[0].high, std::sqrt(2.0 / 3), 1e-6);
  EXPECT_NEAR(spread.layers[1].median, 0.5, 1e-6);
}

TEST(PosteriorSpreads, OfAnImproperMatrixAreNone) {
  const PosteriorSpread spread =
      posterior_spread(checkpoint({tensor("eta.a", {1, 2}), tensor("lambda", {1, 2, 1})}));
  ASSERT_EQ(spread.layers.size(), 1u);
  EXPECT_EQ(spread.layers[0].improper, 2);
}

TEST(PosteriorSpreads, AreRefusedForAMatrixOfAnotherSize) {
  EXPECT_THROW(posterior_spread(checkpoint({tensor("eta.a", {1, 2}), tensor("lambda", {1, 2})})),
               InputError);
}

TEST(PosteriorSpreads, AreRefusedForFilesThatAreNoCheckpoints) {
  EXPECT_THROW(posterior_spread(checkpoint({tensor("weight", {1})})), InputError);
  SafetensorsFile file = checkpoint({one_precision(1)});
  file.metadata["round"] = "many";
  EXPECT_THROW(posterior_spread(file), InputError);
}

}  // namespace
}  // namespace fedep
