// The page's deviations of a run with a last round of curvature.
#include "fedep/page/report/curved_checkpoint.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/page/report/posterior_spread.h"

namespace fedep {
namespace {

Tensor tensor(std::string name, std::vector<std::int64_t> shape, std::vector<float> values) {
  return {std::move(name), std::move(shape), Array(std::move(values))};
}

TEST(CurvedCheckpoint, HasTheDeviationsOfPriorAndCurvatureTogether) {
  const SafetensorsFile own{
      .tensors = {tensor("eta.weight", {1}, {3}), tensor("eta.bias", {1}, {1}),
                  tensor("lambda.weight", {1}, {100}), tensor("lambda.bias", {1}, {100}),
                  tensor("prior.lambda", {}, {1})},
      .metadata = {{"round", "12"}},
      .origin = "c.safetensors"};
  // Λ = [[1 + 2, 1], [1, 1 + 1]], so Λ⁻¹ = [[2, -1], [-1, 3]] / 5.
  const Curvature curvature{
      .round = 12, .mean = {0, 0}, .sum = {.gradient = {0, 0}, .hessian = {2, 1, 1}}};
  const PosteriorSpread spread = posterior_spread(with_curvature(own, curvature));
  ASSERT_EQ(spread.layers.size(), 2u);
  EXPECT_EQ(spread.layers[1].name, "bias");
  EXPECT_NEAR(spread.layers[0].median, std::sqrt(2.0 / 5), 1e-6);
  EXPECT_NEAR(spread.layers[1].median, std::sqrt(3.0 / 5), 1e-6);

  // A prior with a precision for each weight: the matrix is [[1 + 2, 1], [1, 4 + 1]].
  SafetensorsFile apart = own;
  apart.tensors.back() = tensor("prior.lambda.weight", {1}, {1});
  apart.tensors.push_back(tensor("prior.lambda.bias", {1}, {4}));
  const PosteriorSpread of_each = posterior_spread(with_curvature(apart, curvature));
  EXPECT_NEAR(of_each.layers[0].median, std::sqrt(5.0 / 14), 1e-6);
  EXPECT_NEAR(of_each.layers[1].median, std::sqrt(3.0 / 14), 1e-6);
  apart.tensors.pop_back();
  EXPECT_THROW(with_curvature(apart, curvature), InputError);

  Curvature other = curvature;
  other.mean.push_back(0);
  EXPECT_THROW(with_curvature(own, other), InputError);
}

}  // namespace
}  // namespace fedep
