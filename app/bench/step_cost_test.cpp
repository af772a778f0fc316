#include "app/bench/step_cost.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

DatasetInfo images(std::vector<std::int64_t> features, std::size_t outputs) {
  DatasetInfo info;
  info.name = "images";
  info.features = std::move(features);
  info.outputs = outputs;
  return info;
}

// The paper's CIFAR-100 network; ARCHITECTURE.md has its dead weights.
TEST(StepCost, KnowsResnet18OnCropsOfCifar100) {
  const StepCost cost = step_cost({.name = "resnet18"}, images({24, 24, 3}, 100));
  EXPECT_EQ(cost.weights, 11218212u);
  EXPECT_EQ(cost.live_weights, 11218212u - 6946816u);
  EXPECT_NEAR(double(cost.multiply_adds), 13.7e6, 0.05e6);
  EXPECT_TRUE(cost.counted);
}

TEST(StepCost, OfALinearModelIsItsMatrix) {
  const StepCost cost = step_cost({.name = "linear"}, images({60}, 10));
  EXPECT_EQ(cost.weights, 610u);
  EXPECT_EQ(cost.multiply_adds, 600u);
  EXPECT_DOUBLE_EQ(cost.operations(20), 6.0 * 600 * 20);
  EXPECT_DOUBLE_EQ(cost.bytes(20), 4.0 * (7 * 610 + 3 * 70 * 20));
}

// 26x26 and 24x24 positions of 3x3 kernels, then 9216x128 and 128x62.
TEST(StepCost, OfTheCnnCountsEveryPosition) {
  const StepCost cost = step_cost({.name = "cnn"}, images({28, 28, 1}, 62));
  EXPECT_EQ(cost.multiply_adds,
            26u * 26 * 9 * 32 + 24u * 24 * 9 * 32 * 64 + 9216u * 128 + 128u * 62);
}

}  // namespace
}  // namespace fedep
