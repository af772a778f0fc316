// The arithmetic of a chain's step, one pass over memory each. With g the likelihood's gradient
// already in the momentum (m = μ m + ∇, written there by the model), per coordinate
//
//   m ← m + (λ θ - η)/n,   θ ← θ - lr m
//
// and, where no data ever give a gradient, n steps of m ← μ m + (λ θ - η)/n, θ ← θ - lr m at once.
#pragma once

#include <cstddef>
#include <span>

namespace fedep {

struct SgdNumbers {
  float lr = 0.01f;
  float momentum = 0.0f;
  float per_example = 0.0f;  // 1/N_k
};

// `lambda` has one element or as many as theta.
void prior_step(const SgdNumbers& numbers, std::span<const float> eta,
                std::span<const float> lambda, std::span<float> momentum, std::span<float> theta);

void coast(const SgdNumbers& numbers, int steps, std::span<const float> eta,
           std::span<const float> lambda, std::span<float> momentum, std::span<float> theta);

// Running moments of the n-th sample (n from 1): mean and, if not empty, the sum of squares about
// it.
void accumulate(int n, std::span<const float> sample, std::span<float> mean,
                std::span<float> squares);

// to += from
void add(std::span<const float> from, std::span<float> to);

}  // namespace fedep
