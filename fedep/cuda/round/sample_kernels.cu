#include "fedep/cuda/round/sample_kernels.h"

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/reduce.cuh"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 256;         // elements that a block has in shared memory
constexpr int kParts = 4;          // threads that share a pair's elements
constexpr unsigned kBlocks = 264;  // two for each multiprocessor
constexpr int kMostPairs = kMostSamples * (kMostSamples + 1) / 2;
constexpr int kOwn = (kMostPairs * kParts + kThreads - 1) / kThreads;  // sums of a thread, at most

__host__ __device__ int pairs_of(int count) { return count * (count + 1) / 2; }

// Sample i ≥ j of pair p, counted row by row of the lower triangle.
__device__ void find_pair(int p, int& i, int& j) {
  i = 0;
  while (pairs_of(i + 1) <= p) ++i;
  j = p - pairs_of(i);
}

// partial[block, pair, part]
__global__ void __launch_bounds__(kThreads)
    products_kernel(const __grid_constant__ Moves moves, double* partial) {
  __shared__ float tile[kMostSamples][kTile + 1];
  const int tid = int(threadIdx.x), sums = pairs_of(moves.count) * kParts;
  int first[kOwn], second[kOwn];
  double sum[kOwn] = {};
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    find_pair(min(tid + k * kThreads, sums - 1) / kParts, first[k], second[k]);
  for (std::size_t begin = std::size_t(blockIdx.x) * kTile; begin < moves.size;
       begin += std::size_t(gridDim.x) * kTile) {
    const std::size_t at = begin + std::size_t(tid);
    const bool inside = at < moves.size;
    const float first_sample = inside ? moves.sample[0][at] : 0.0f;
    __syncthreads();
    tile[0][tid] = inside ? first_sample - moves.initial[at] : 0.0f;
#pragma unroll 4
    for (int i = 1; i < moves.count; ++i) {
      tile[i][tid] = inside ? moves.sample[i][at] - first_sample : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      if (tid + k * kThreads >= sums) break;
      const float* const a = tile[first[k]] + tid % kParts;
      const float* const b = tile[second[k]] + tid % kParts;
      for (int e = 0; e < kTile; e += kParts) sum[k] += double(a[e]) * double(b[e]);
    }
  }
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int own = tid + k * kThreads;
    if (own < sums)
      partial[std::size_t(blockIdx.x) * std::size_t(sums) + std::size_t(own)] = sum[k];
  }
}

__global__ void add_parts_kernel(int count, unsigned blocks, const double* partial,
                                 double* products) {
  const int pair = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (pair >= pairs_of(count)) return;
  double total = 0;
  for (unsigned block = 0; block < blocks; ++block) {
    for (int part = 0; part < kParts; ++part) {
      total += partial[(std::size_t(block) * pairs_of(count) + std::size_t(pair)) * kParts + part];
    }
  }
  int i, j;
  find_pair(pair, i, j);
  products[i * count + j] = products[j * count + i] = total;
}

__global__ void sum_kernel(const __grid_constant__ Moves moves,
                           const __grid_constant__ MoveWeights weights, float* out) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < moves.size;
       i += stride) {
    const float first = moves.sample[0][i];
    float sum = weights.weight[0] * (first - moves.initial[i]);
#pragma unroll 4
    for (int k = 1; k < moves.count; ++k) {
      sum += weights.weight[k] * (moves.sample[k][i] - first);
    }
    out[i] = sum;
  }
}

}  // namespace

std::size_t product_scratch(int count) {
  return std::size_t(kBlocks) * std::size_t(pairs_of(count) * kParts) * sizeof(double);
}

void products_of_moves(const Moves& moves, void* scratch, double* products, CUstream_st* stream) {
  auto* const partial = static_cast<double*>(scratch);
  products_kernel<<<kBlocks, kThreads, 0, stream>>>(moves, partial);
  check_launch("products_of_moves");
  const unsigned blocks = unsigned(pairs_of(moves.count) + 31) / 32;
  add_parts_kernel<<<blocks, 32, 0, stream>>>(moves.count, kBlocks, partial, products);
  check_launch("products_of_moves");
}

void sum_of_moves(const Moves& moves, const MoveWeights& weights, float* out, CUstream_st* stream) {
  sum_kernel<<<blocks_for(moves.size, kThreads), kThreads, 0, stream>>>(moves, weights, out);
  check_launch("sum_of_moves");
}

}  // namespace fedep::gpu
