// A thread's elements in groups: reading all of a group before working on any of it keeps enough
// loads on their way for the whole of the memory's bandwidth.
#pragma once

#include <cstddef>

namespace fedep {

constexpr int kAtOnce = 4;

// Elements first, first + stride, …: `count` of them, at most kAtOnce.
struct Group {
  std::size_t first, stride;
  int count;

  // Calls work(j, i) for each: the j-th is element i.
  template <class Work>
  __device__ void each(const Work& work) const {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (j < count) work(j, first + j * stride);
    }
  }
};

// Calls work(group) for groups of the elements first, first + stride, … below n, in order.
template <class Work>
__device__ void for_each_group(std::size_t first, std::size_t stride, std::size_t n,
                               const Work& work) {
  for (std::size_t i = first; i < n; i += kAtOnce * stride) {
    int count = 1;
#pragma unroll
    for (int j = 1; j < kAtOnce; ++j) count += i + j * stride < n ? 1 : 0;
    work(Group{i, stride, count});
  }
}

// The same for all elements below n of a grid of (rows, blocks): a block has its row's.
template <class Work>
__device__ void for_each_group_of_row(std::size_t n, const Work& work) {
  for_each_group(std::size_t(blockIdx.y) * blockDim.x + threadIdx.x,
                 std::size_t(gridDim.y) * blockDim.x, n, work);
}

}  // namespace fedep
