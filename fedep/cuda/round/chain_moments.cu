// Samples of chains, added to their moments one by one or several together.
#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/round/chain_rows.cuh"

namespace fedep::gpu {
namespace {

// The last iterate of an epoch of `taken` steps, or the average where sums are kept.
struct PresentSample {
  const float* from;
  float taken = 0;  // 0: not an average

  __device__ PresentSample(const ChainRows& rows, int steps)
      : from(rows.sum != nullptr && steps > 0 ? rows.sum : rows.theta),
        taken(rows.sum != nullptr ? float(steps) : 0.0f) {}
  __device__ float of(float x) const { return taken > 0 ? x / taken : x; }
};

// Where the kept samples of the block's chunk begin, less where its coordinates do.
__device__ std::size_t kept_begin(const Chunk& chunk, const ChainRows& rows) {
  return (std::size_t(blockIdx.y) * gridDim.x + blockIdx.x) * kChunk -
         (blockIdx.y * rows.stride + chunk.begin);
}

__global__ void __launch_bounds__(kThreads)
    keep_sample_kernel(ChainRows rows, Chunks chunks, const std::int32_t* steps, float* kept) {
  const Chunk chunk = chunks.chunks[blockIdx.x];
  const PresentSample present(rows, steps[blockIdx.y]);
  const std::size_t begin = kept_begin(chunk, rows);
  for_each_group_of(chunk, rows, [&](const Group& group) {
    float x[kAtOnce];
    group.each([&](int j, std::size_t i) { x[j] = present.from[i]; });
    group.each([&](int j, std::size_t i) { kept[begin + i] = present.of(x[j]); });
  });
}

// `kMost` samples were kept, or fewer.
template <int kMost>
__global__ void __launch_bounds__(kThreads)
    add_samples_kernel(ChainRows rows, Chunks chunks, const std::int32_t* steps, const float* kept,
                       int count, bool with_present, int n) {
  const Chunk chunk = chunks.chunks[blockIdx.x];
  const PresentSample present(rows, steps[blockIdx.y]);
  const std::size_t begin = kept_begin(chunk, rows);
  const std::size_t stride = std::size_t(gridDim.y) * gridDim.x * kChunk;
  for_each_group_of(chunk, rows, [&](const Group& group) {
    float x[kAtOnce], before[kAtOnce][kMost > 0 ? kMost : 1];
    Samples samples[kAtOnce];
    group.each([&](int j, std::size_t i) {
#pragma unroll
      for (int k = 0; k < kMost; ++k) {
        if (k < count) before[j][k] = kept[k * stride + begin + i];
      }
      if (with_present) x[j] = present.from[i];
      samples[j] = samples_before(rows, i, n);
    });
    group.each([&](int j, std::size_t i) {
#pragma unroll
      for (int k = 0; k < kMost; ++k) {
        if (k < count) samples[j].add(1.0f / float(n + k), before[j][k]);
      }
      if (with_present) samples[j].add(1.0f / float(n + count), present.of(x[j]));
      samples[j].write(rows, i);
    });
  });
}

}  // namespace

void keep_sample(const ChainRows& rows, const Chunks& chunks, const std::int32_t* steps,
                 float* kept, int place, Stream stream) {
  if (chunks.count == 0) return;
  float* const to = kept + std::size_t(place) * std::size_t(rows.clients) * kept_stride(chunks);
  keep_sample_kernel<<<grid_of(chunks, rows), kThreads, 0, stream>>>(rows, chunks, steps, to);
  check_launch("keep_sample");
}

void add_samples(const ChainRows& rows, const Chunks& chunks, const std::int32_t* steps,
                 const float* kept, int count, bool with_present, int n, Stream stream) {
  if (chunks.count == 0) return;
  const auto kernel = count > 0 ? add_samples_kernel<kMostKept> : add_samples_kernel<0>;
  kernel<<<grid_of(chunks, rows), kThreads, 0, stream>>>(rows, chunks, steps, kept, count,
                                                         with_present, n);
  check_launch("add_samples");
}

}  // namespace fedep::gpu
