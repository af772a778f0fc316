// Gradients of weights as weight_product.cu sums them and weight_splits.cu finishes them, and what
// is done with one.
#pragma once

#include <cstddef>

#include "fedep/cuda/convolution_kernels.h"

namespace fedep::gpu {

enum class Sum {
  gradients,         // Σ x δ
  squared_products,  // Σ x² δ²: squares per example, where each has one position
  squares,           // Σ_examples (Σ_positions x δ)²
};

struct WeightTask {
  Geometry g;
  CohortShape cohort;
  const float* x;
  bool x_is_tf32;
  const float* dy;
  int splits;  // of the sum; several: their parts go to `partial` [splits, clients, taps in out]
  float* partial;
  Update update;  // of Sum::gradients
  float* sum;     // of the others, with update.stride between clients
};

// One weight's step. Without momentum `momentum` is where the step is made, no more.
__device__ inline void step(const Update& u, float lambda, float per_example, float eta,
                            float gradient, float& momentum, float& theta) {
  const float kept = u.mu != 0 ? u.mu * momentum : 0.0f;
  momentum = kept + gradient + (lambda * theta - eta) * per_example;
  theta -= u.lr * momentum;
}

__device__ inline void update_one(const Update& u, int client, std::size_t at, float gradient) {
  const std::size_t i = std::size_t(client) * u.stride + at;
  step(u, u.diagonal ? u.lambda[i] : u.lambda[client], u.per_example[client],
       u.eta == nullptr ? 0.0f : u.eta[i], gradient, u.momentum[i], u.theta[i]);
}

// Adds up the parts of a sum, in their order, and does with it what weight_product does. `squares`:
// sums of squares; `vector`: weights come in fours.
void finish_splits(const WeightTask& task, bool squares, bool vector, Stream stream);

}  // namespace fedep::gpu
