#include "fedep/sim/chain/sgd_update.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/inference/elements.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using Floats = std::vector<float>;

Floats normals(std::size_t size, std::uint32_t step) {
  Floats x(size);
  fill_normal({.seed = 5, .step = step}, x);
  return x;
}
Floats positives(std::size_t size, std::uint32_t step) {
  Floats x = normals(size, step);
  for (float& v : x) v = 1 + v * v;
  return x;
}

// More than two of the blocks that coast() works in, and not a multiple of them.
constexpr std::size_t kSize = 2500;
constexpr SgdNumbers kNumbers{.lr = 0.05f, .momentum = 0.9f, .per_example = 0.125f};

TEST(PriorStep, AddsThePriorsGradientAndMoves) {
  Floats m{1, -2}, theta{3, 4};
  prior_step({.lr = 0.5f, .momentum = 0.9f, .per_example = 0.25f}, Floats{2, 4}, Floats{8, 16}, m,
             theta);
  // m + (λθ - η)/n: 1 + (24 - 2)/4, -2 + (64 - 4)/4
  EXPECT_EQ(m, (Floats{6.5f, 13}));
  EXPECT_EQ(theta, (Floats{3 - 3.25f, 4 - 6.5f}));
}

TEST(PriorStep, RestsAtThePriorsMean) {
  const Floats lambda{4, 8}, eta{2, -8};
  Floats m(2), theta{0.5f, -1};
  prior_step(kNumbers, eta, lambda, m, theta);
  EXPECT_EQ(theta, (Floats{0.5f, -1}));
  EXPECT_EQ(m, Floats(2));
}

TEST(PriorStep, OfOneLambdaIsThatOfManyEqualOnes) {
  const Floats eta = normals(kSize, 1);
  Floats m = normals(kSize, 2), theta = normals(kSize, 3);
  Floats m2 = m, theta2 = theta;
  prior_step(kNumbers, eta, Floats{2.5f}, m, theta);
  prior_step(kNumbers, eta, Floats(kSize, 2.5f), m2, theta2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(theta, theta2);
}

TEST(Coast, IsSteppingOneByOne) {
  const Floats eta = normals(kSize, 1);
  for (const Floats& lambda : {Floats{3.0f}, positives(kSize, 4)}) {
    for (const int steps : {0, 1, 7, 50}) {
      Floats m = normals(kSize, 2), theta = normals(kSize, 3);
      Floats m2 = m, theta2 = theta;
      coast(kNumbers, steps, eta, lambda, m, theta);
      for (int step = 0; step < steps; ++step) {
        for (float& x : m2) x *= kNumbers.momentum;
        prior_step(kNumbers, eta, lambda, m2, theta2);
      }
      EXPECT_EQ(m, m2) << steps;
      EXPECT_EQ(theta, theta2) << steps;
    }
  }
}

TEST(Coast, InPiecesIsCoastingAtOnce) {
  const Floats eta = normals(kSize, 1), lambda = positives(kSize, 4);
  Floats m(kSize), theta = normals(kSize, 3), m2(kSize), theta2 = theta;
  coast(kNumbers, 12, eta, lambda, m, theta);
  coast(kNumbers, 5, eta, lambda, m2, theta2);
  coast(kNumbers, 7, eta, lambda, m2, theta2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(theta, theta2);
}

TEST(Coast, EndsAtThePriorsMean) {
  const Floats eta = normals(kSize, 1), lambda = positives(kSize, 4);
  Floats m(kSize), theta = normals(kSize, 3);
  coast(kNumbers, 5000, eta, lambda, m, theta);
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(theta[i], eta[i] / lambda[i], 1e-5);
}

TEST(Accumulate, GivesMeanAndSumOfSquaresAboutIt) {
  constexpr int kSamples = 9;
  Floats mean(kSize), squares(kSize), mean_only(kSize);
  for (int n = 1; n <= kSamples; ++n) {
    const Floats x = normals(kSize, 100 + std::uint32_t(n));
    accumulate(n, x, mean, squares);
    accumulate(n, x, mean_only, {});
    if (n == 1) {
      EXPECT_EQ(mean, x);
      EXPECT_EQ(squares, Floats(kSize));
    }
  }
  EXPECT_EQ(mean, mean_only);
  for (std::size_t i = 0; i < kSize; ++i) {
    double sum = 0, about = 0;
    for (int n = 1; n <= kSamples; ++n) sum += normals(kSize, 100 + std::uint32_t(n))[i];
    for (int n = 1; n <= kSamples; ++n) {
      about += std::pow(normals(kSize, 100 + std::uint32_t(n))[i] - sum / kSamples, 2);
    }
    if (i > 20) break;
    EXPECT_NEAR(mean[i], sum / kSamples, 1e-6);
    EXPECT_NEAR(squares[i], about, 1e-5 * (1 + about));
  }
}

TEST(Accumulate, OfEqualSamplesHasNoVarianceAtAll) {
  const Floats x = normals(kSize, 1);
  Floats mean(kSize), squares(kSize);
  for (int n = 1; n <= 20; ++n) accumulate(n, x, mean, squares);
  EXPECT_EQ(mean, x);
  EXPECT_EQ(squares, Floats(kSize));
}

TEST(Add, Adds) {
  Floats to{1, 2};
  add(Floats{10, 20}, to);
  EXPECT_EQ(to, (Floats{11, 22}));
}

TEST(Accumulate, DoesToEveryCoordinateWhatRunningMomentsDo) {
  Floats mean(kSize), squares(kSize);
  std::vector<RunningMoments<>> expected(kSize);
  for (int n = 1; n <= 7; ++n) {
    const Floats x = normals(kSize, std::uint32_t(40 + n));
    accumulate(n, x, mean, squares);
    for (std::size_t i = 0; i < kSize; ++i) expected[i].add(1.0f / float(n), x[i]);
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(mean[i], expected[i].mean);
    EXPECT_EQ(squares[i], expected[i].squares);
  }
}

}  // namespace
}  // namespace fedep
