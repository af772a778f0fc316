// Gradients of weights as weight_product.cu and weight_update.cu sum them and weight_splits.cu
// finishes them, and what is done with one.
#pragma once

#include <cstddef>

#include "fedep/cuda/network/convolution_kernels.h"

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
  int splits;  // of the sum; several: their parts go to `partial` [splits, rows(), taps in out]
  float* partial;
  Update update;   // of Sum::gradients
  SquaredSum sum;  // of the others

  // Clients whose weights these are.
  __host__ __device__ int rows() const { return cohort.clients / sum.minibatches; }
};

// The examples of a client's minibatches, which lie `rows` apart, counted as if they were one
// batch.
struct MinibatchRows {
  int size;   // of one
  int count;  // of all
  int gap;    // rows between the end of one and the beginning of the next

  __device__ MinibatchRows(const CohortShape& cohort, int minibatches, int client) {
    const std::int32_t* const counts = cohort.counts + client * minibatches;
    size = counts[0];
    gap = cohort.rows - size;
    count = size;
    for (int i = 1; i < minibatches; ++i) count += counts[i];
  }
  // Row that example i is at. The quotient by a float is exact: i is below 2^22.
  __device__ int at(int i) const {
    return gap == 0 || i < size ? i : i + __float2int_rz((float(i) + 0.5f) / float(size)) * gap;
  }
};

// The client's rate in this step.
__device__ inline float rate_of(const Update& u, int client) {
  return u.rate != nullptr ? u.rate[client] : u.lr;
}

// One weight's step. Without momentum `momentum` is where the step is made, no more.
__device__ inline void step(const Update& u, float rate, float lambda, float per_example, float eta,
                            float gradient, float& momentum, float& theta) {
  const float kept = u.mu != 0 ? u.mu * momentum : 0.0f;
  momentum = kept + gradient + (lambda * theta - eta) * per_example;
  theta -= rate * momentum;
}

__device__ inline void update_one(const Update& u, int client, std::size_t at, float gradient) {
  const std::size_t i = std::size_t(client) * u.stride + at;
  step(u, rate_of(u, client), u.diagonal ? u.lambda[i] : u.lambda[client], u.per_example[client],
       u.eta == nullptr ? 0.0f : u.eta[i], gradient, u.momentum[i], u.theta[i]);
}

// update_weights() where the sum has few terms (weight_update.cu): weights come in fours, in one
// part.
bool has_few_terms(const Geometry& g, const CohortShape& cohort);
void update_directly(const WeightTask& task, Stream stream);

// Adds up the parts of a sum, in their order, and does with it what weight_product does. `squares`:
// sums of squares; `vector`: weights come in fours.
void finish_splits(const WeightTask& task, bool squares, bool vector, Stream stream);

}  // namespace fedep::gpu
