// Reductions that repeat bit for bit: a grid that depends on the number of elements alone, each
// thread over its strided elements in order, then a fixed tree. Two kernels: one per block, one
// over the blocks.
//
// An operation R has a plain type R::Value and
//
//   R::Value zero() const;
//   auto load(int row, std::size_t i) const;  // what there is to read of an element
//   void take(R::Value&, const loaded&) const;
//   void merge(R::Value&, const R::Value&) const;
//
// Rows (clients) are reduced side by side: out[row].
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "fedep/cuda/device/groups.cuh"
#include "fedep/cuda/device/launch.h"

namespace fedep {

// Blocks for n elements: enough to fill any GPU, each thread taking its elements in strides beyond
// that.
inline unsigned blocks_for(std::size_t n, unsigned threads) {
  constexpr std::size_t kMost = 132 * 16;
  const std::size_t wanted = (n + threads - 1) / threads;
  return unsigned(wanted < 1 ? 1 : (wanted < kMost ? wanted : kMost));
}

constexpr unsigned kReduceThreads = 256;
constexpr unsigned kReduceBlocks = 512;  // at most, per row

inline unsigned reduce_blocks(std::size_t n) {
  const std::size_t wanted = (n + 4 * kReduceThreads - 1) / (4 * kReduceThreads);
  return unsigned(wanted < 1 ? 1 : (wanted < kReduceBlocks ? wanted : kReduceBlocks));
}

template <class R>
__device__ void reduce_block(const R& op, typename R::Value value, typename R::Value* out) {
  __shared__ typename R::Value shared[kReduceThreads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kReduceThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) op.merge(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = shared[0];
}

template <class R>
__global__ void reduce_rows(R op, std::size_t n, typename R::Value* partial) {
  typename R::Value value = op.zero();
  const int row = int(blockIdx.x);
  for_each_group_of_row(n, [&](const Group& group) {
    decltype(op.load(row, n)) loaded[kAtOnce];
    group.each([&](int j, std::size_t i) { loaded[j] = op.load(row, i); });
    group.each([&](int j, std::size_t) { op.take(value, loaded[j]); });
  });
  reduce_block(op, value, partial + std::size_t(row) * gridDim.y + blockIdx.y);
}

template <class R>
__global__ void reduce_partials(R op, unsigned blocks, const typename R::Value* partial,
                                typename R::Value* out) {
  typename R::Value value = op.zero();
  const typename R::Value* row = partial + std::size_t(blockIdx.x) * blocks;
  for (unsigned i = threadIdx.x; i < blocks; i += blockDim.x) op.merge(value, row[i]);
  reduce_block(op, value, out + blockIdx.x);
}

// `scratch` has room for rows × kReduceBlocks values.
template <class R>
void reduce(const char* name, const R& op, unsigned rows, std::size_t n, void* scratch,
            typename R::Value* out, cudaStream_t stream) {
  auto* partial = static_cast<typename R::Value*>(scratch);
  const unsigned blocks = reduce_blocks(n);
  // Neighbouring blocks are at one place of all rows: what rows share is in the cache then.
  reduce_rows<<<dim3(rows, blocks), kReduceThreads, 0, stream>>>(op, n, partial);
  gpu::check_launch(name);
  reduce_partials<<<rows, kReduceThreads, 0, stream>>>(op, blocks, partial, out);
  gpu::check_launch(name);
}

}  // namespace fedep
