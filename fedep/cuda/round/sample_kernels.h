// Kernels of FedPA's samples (algorithm/fed_pa.h). Plain C++17: nvcc reads this. Pointers are to
// GPU memory; functions enqueue on `stream` and return.
#pragma once

#include <cstddef>

struct CUstream_st;

namespace fedep::gpu {

constexpr int kMostSamples = 32;

// Samples, at most kMostSamples, whose moves are asked about: the first from where its chain
// started, the others from the first.
struct Moves {
  const float* sample[kMostSamples] = {};
  const float* initial = nullptr;
  int count = 0;
  std::size_t size = 0;
};

// products[i, j] = Σ move_i move_j, [count, count], in double and in a fixed order.
std::size_t product_scratch(int count);  // bytes
void products_of_moves(const Moves& moves, void* scratch, double* products, CUstream_st* stream);

// out = Σ weight_i move_i
struct MoveWeights {
  float weight[kMostSamples] = {};
};
void sum_of_moves(const Moves& moves, const MoveWeights& weights, float* out, CUstream_st* stream);

}  // namespace fedep::gpu
