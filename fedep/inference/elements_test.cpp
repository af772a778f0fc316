// Formulas of one number against the same formulas of whole vectors, as the methods have them.

#include "fedep/inference/elements.h"

#include <gtest/gtest.h>

#include "fedep/message/host_vector.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

V drawn(std::uint32_t step, float shift = 0) {
  V x(999);
  fill_normal({.seed = 8, .step = step}, x.span());
  return x + shift;
}

TEST(Elements, OfNaturalGradientsAreWhatVectorsDo) {
  const V nu = drawn(1), fisher = drawn(2), prior = drawn(3);
  const double beta = 0.9;
  const float n = 37;
  const V next = float(beta) * nu + float(1 - beta) * fisher;
  const V lambda = n * next + prior;
  for (std::size_t i = 0; i < nu.size(); ++i) {
    EXPECT_EQ(natural_step(float(beta), nu[i], float(1 - beta), fisher[i]), next[i]);
    EXPECT_EQ(natural_precision(n, next[i], prior[i]), lambda[i]);
  }
}

TEST(Elements, OfSampleMomentsAreWhatVectorsDo) {
  const V squares = drawn(4, 6);
  const double r = 0.03;
  const V variance = squares / 9.0f;
  const V lambda = constant_like(squares, 1) / (float(1 - r) * variance + float(r));
  const V clipped = clamp(lambda, 0.9f, 1.6f);
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const float own = sample_precision(squares[i], 9, float(1 - r), float(r));
    EXPECT_EQ(own, lambda[i]);
    EXPECT_EQ(clamped(own, 0.9f, 1.6f), clipped[i]);
  }
}

TEST(Elements, RunningMomentsAreThoseOfTheSamples) {
  const V samples = drawn(5, 100);
  RunningMoments<> moments;
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    moments.add(1.0f / float(i + 1), samples[i]);
    sum += samples[i];
  }
  const double mean = sum / double(samples.size());
  double about = 0;
  for (const float x : samples) about += (x - mean) * (x - mean);
  EXPECT_NEAR(moments.mean, mean, 1e-4);
  EXPECT_NEAR(moments.squares / about, 1, 1e-4);
  RunningMoments<> one;
  one.add(1, samples[0]);
  EXPECT_EQ(one.mean, samples[0]);
  EXPECT_EQ(one.squares, 0);
}

}  // namespace
}  // namespace fedep
