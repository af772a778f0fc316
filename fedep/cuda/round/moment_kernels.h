// The tilted distributions that sample moments give (inference/sample_moments.h), for a whole
// cohort in three passes over memory and without waiting for a number in between. Compiled without
// contraction. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>

struct CUstream_st;

namespace fedep::gpu {

using Stream = CUstream_st*;

constexpr int kMomentPartials = 128;

// Rows are [clients, stride], of which `size` count. Device memory.
struct Moments {
  int clients = 0;
  std::size_t stride = 0, size = 0;
  const float* mean = nullptr;
  const float* squares = nullptr;  // about it
  float samples_less_one = 1;
  float one_less_shrinkage = 1, shrinkage = 0;
  double clip_width = 0;  // 0: not clipped
  bool rescale = false;   // to the norm of cavity + added
  const float* const* cavity =
      nullptr;  // [clients] of lambdas of `size`; a null one: `cavity_number`
  const float* cavity_number = nullptr;  // [clients]
  const float* added = nullptr;          // [clients]
  double* partial = nullptr;             // [clients, kMomentPartials, 3]
  float* bounds = nullptr;               // [clients, 3]: low, high, factor
};

// lambda[c] and eta[c] point to `size` floats each: factor clip(1 / ((1-r) variance + r)), and that
// times the mean.
void sample_moments(const Moments& moments, float* const* eta, float* const* lambda, Stream stream);

}  // namespace fedep::gpu
