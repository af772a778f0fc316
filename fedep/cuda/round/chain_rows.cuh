// How the kernels of chains go through their rows, and the moments of a coordinate's samples.
#pragma once

#include "fedep/cuda/device/groups.cuh"
#include "fedep/cuda/round/chain_kernels.h"
#include "fedep/inference/elements.h"

namespace fedep::gpu {

constexpr int kThreads = 256;

// A block for each chunk of each row.
inline dim3 grid_of(const Chunks& chunks, const ChainRows& rows) {
  return dim3(unsigned(chunks.count), unsigned(rows.clients));
}

// All groups of a chunk's coordinates in the block's row.
template <class Work>
__device__ void for_each_group_of(const Chunk& chunk, const ChainRows& rows, const Work& work) {
  const std::size_t begin = blockIdx.y * rows.stride + chunk.begin;
  for_each_group(begin + threadIdx.x, kThreads, begin + chunk.size, work);
}

// The moments of a coordinate's samples so far.
struct Samples : RunningMoments<> {
  __device__ void write(const ChainRows& rows, std::size_t i) const {
    rows.mean[i] = mean;
    if (rows.squares != nullptr) rows.squares[i] = squares;
  }
};

__device__ inline Samples samples_before(const ChainRows& rows, std::size_t i, int n) {
  if (n <= 1) return {};
  return {{rows.mean[i], rows.squares != nullptr ? rows.squares[i] : 0.0f}};
}

}  // namespace fedep::gpu
