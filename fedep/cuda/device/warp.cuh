// Sums and maxima over a warp, and how many blocks so many items take.
#pragma once

#include <cstddef>

namespace fedep::gpu {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kWarps = 8;  // of a block whose warps work alone

__device__ inline float sum_over_warp(float x) {
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
__device__ inline float max_over_warp(float x) {
  for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}

inline unsigned blocks_for(std::size_t items, unsigned threads) {
  return unsigned((items + threads - 1) / threads);
}

}  // namespace fedep::gpu
