#include "fedep/cuda/round/fisher_kernels.h"

#include <cmath>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/random.cuh"
#include "fedep/inference/elements.h"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void begin_draw_kernel(DrawStreams s, int draws) {
  const std::int32_t draw = *s.draw;
  for (int r = threadIdx.x; r < s.rows; r += blockDim.x) {
    const std::uint32_t step = s.at[r].step, own = draw + r % s.at_once;
    s.dropout[r].step = step + 2 * own;
    s.dropout_again[r].step = step + 2 * own + 1;
    s.labels[r].step = step + own;
    s.weights[r].step = step + own;
  }
  __syncthreads();  // everybody has read `draw`
  if (threadIdx.x == 0) *s.draw = draw + s.at_once < draws ? draw + s.at_once : 0;
}

__global__ void fill_normals_kernel(StreamAddress address, std::size_t size, float* out) {
  const std::size_t quad = std::size_t(blockIdx.x) * kThreads + threadIdx.x;
  if (4 * quad >= size) return;
  const float4 normals = four_normals(philox_block(address, quad));
  const float values[4] = {normals.x, normals.y, normals.z, normals.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (4 * quad + j < size) out[4 * quad + j] = values[j];
  }
}

__device__ float drawn(float mean, float noise, float lambda) {
  return __fadd_rn(mean, __fdiv_rn(noise, __fsqrt_rn(lambda)));
}

__global__ void __launch_bounds__(kThreads) draw_weights_kernel(WeightDraws d, Chunks quads) {
  const int client = blockIdx.z, row = client * d.at_once + blockIdx.x;
  if (d.count[row] == 0) return;
  const Chunk chunk = quads.chunks[blockIdx.y];
  const StreamAddress address = d.streams[row];
  const std::size_t from = std::size_t(client) * (d.stride / 4),
                    to = std::size_t(row) * (d.stride / 4);
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    const std::size_t quad = chunk.begin + j;
    const float4 noise = four_normals(philox_block(address, quad));
    const float4 m = reinterpret_cast<const float4*>(d.mean)[from + quad];
    const float4 l = reinterpret_cast<const float4*>(d.lambda)[from + quad];
    reinterpret_cast<float4*>(d.theta)[to + quad] =
        make_float4(drawn(m.x, noise.x, l.x), drawn(m.y, noise.y, l.y), drawn(m.z, noise.z, l.z),
                    drawn(m.w, noise.w, l.w));
  }
}

__device__ float prior_of(const NaturalGradient& s, int c, std::size_t i) {
  return s.diagonal ? s.prior[i] : s.prior[c];
}

__global__ void __launch_bounds__(kThreads)
    begin_kernel(NaturalGradient s, Chunks chunks, float initial) {
  const int c = blockIdx.y;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  if (blockIdx.x == 0 && threadIdx.x == 0) s.rest_nu[c] = initial;
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    const std::size_t i = c * s.stride + chunk.begin + j;
    s.nu[i] = initial;
    s.lambda[i] = natural_precision(s.examples[c], initial, prior_of(s, c, i));
    s.fisher[i] = 0.0f;
  }
}

__device__ double warp_sum(double value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(0xffffffffu, value, lane);
  return value;
}

// Sums of F / draws and of its square, over every gridDim.x-th chunk.
__global__ void __launch_bounds__(kThreads)
    partial_sums_kernel(NaturalGradient s, Chunks chunks, float draws) {
  const int c = blockIdx.y;
  double sum = 0, squares = 0;
  for (int k = blockIdx.x; k < chunks.count; k += gridDim.x) {
    const Chunk chunk = chunks.chunks[k];
#pragma unroll 4
    for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
      const double f = s.fisher[c * s.stride + chunk.begin + j] / draws;
      sum += f;
      squares += f * f;
    }
  }
  __shared__ double parts[2][kThreads / 32];
  sum = warp_sum(sum);
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) {
    parts[0][threadIdx.x / 32] = sum;
    parts[1][threadIdx.x / 32] = squares;
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    double total = 0;
    for (int w = 0; w < kThreads / 32; ++w) total += parts[threadIdx.x][w];
    s.partial[(std::size_t(c) * kPartials + blockIdx.x) * 2 + threadIdx.x] = total;
  }
}

// One thread a client: the bounds, and the coordinates whose F is always 0.
__global__ void bounds_kernel(NaturalGradient s, const std::int32_t* count, int count_step,
                              float beta, float one_minus_beta, double width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= s.clients || count[c * count_step] == 0) return;
  float low = -INFINITY, high = INFINITY;
  if (width > 0) {
    double sum = 0, squares = 0;
    for (int k = 0; k < kPartials; ++k) {
      sum += s.partial[(std::size_t(c) * kPartials + k) * 2];
      squares += s.partial[(std::size_t(c) * kPartials + k) * 2 + 1];
    }
    const double d = double(s.size), average = sum / d;
    const double spread = sqrt(fmax(0.0, squares / d - average * average));
    low = float(average - width * spread);
    high = float(average + width * spread);
  }
  s.bounds[2 * c] = low;
  s.bounds[2 * c + 1] = high;
  s.rest_nu[c] = natural_step(beta, s.rest_nu[c], one_minus_beta, clamped(0.0f, low, high));
}

__global__ void __launch_bounds__(kThreads)
    update_kernel(NaturalGradient s, Chunks chunks, const std::int32_t* count, int count_step,
                  float draws, float beta, float one_minus_beta) {
  const int c = blockIdx.y;
  if (count[c * count_step] == 0) return;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  const float low = s.bounds[2 * c], high = s.bounds[2 * c + 1], n = s.examples[c];
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    const std::size_t i = c * s.stride + chunk.begin + j;
    const float f = clamped(s.fisher[i] / draws, low, high);
    const float nu = natural_step(beta, s.nu[i], one_minus_beta, f);
    s.nu[i] = nu;
    s.lambda[i] = natural_precision(n, nu, prior_of(s, c, i));
    s.fisher[i] = 0.0f;
  }
}

__global__ void spread_rest_kernel(NaturalGradient s, Chunks rest) {
  const int c = blockIdx.y;
  const Chunk chunk = rest.chunks[blockIdx.x];
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    s.nu[c * s.stride + chunk.begin + j] = s.rest_nu[c];
  }
}

dim3 grid_of(const Chunks& chunks, int clients) {
  return dim3(unsigned(chunks.count), unsigned(clients));
}

}  // namespace

void begin_draw(const DrawStreams& streams, int draws, Stream stream) {
  begin_draw_kernel<<<1, kThreads, 0, stream>>>(streams, draws);
  check_launch("begin_draw");
}

void fill_normals(const StreamAddress& address, std::size_t size, float* out, Stream stream) {
  if (size == 0) return;
  const std::size_t quads = (size + 3) / 4;
  fill_normals_kernel<<<unsigned((quads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      address, size, out);
  check_launch("fill_normals");
}

void draw_weights(const WeightDraws& draws, const Chunks& quads, Stream stream) {
  // Neighbouring blocks make several draws from one place, which is in the cache then.
  const dim3 grid(unsigned(draws.at_once), unsigned(quads.count),
                  unsigned(draws.rows / draws.at_once));
  draw_weights_kernel<<<grid, kThreads, 0, stream>>>(draws, quads);
  check_launch("draw_weights");
}

void begin_natural_gradient(const NaturalGradient& state, const Chunks& chunks, float initial,
                            Stream stream) {
  begin_kernel<<<grid_of(chunks, state.clients), kThreads, 0, stream>>>(state, chunks, initial);
  check_launch("begin_natural_gradient");
}

void step_natural_gradient(const NaturalGradient& state, const Chunks& chunks,
                           const std::int32_t* count, int count_step, int draws, float beta,
                           float one_minus_beta, double width, Stream stream) {
  if (width > 0) {
    partial_sums_kernel<<<dim3(kPartials, unsigned(state.clients)), kThreads, 0, stream>>>(
        state, chunks, float(draws));
    check_launch("partial_sums");
  }
  bounds_kernel<<<unsigned(state.clients + 31) / 32, 32, 0, stream>>>(state, count, count_step,
                                                                      beta, one_minus_beta, width);
  check_launch("bounds");
  update_kernel<<<grid_of(chunks, state.clients), kThreads, 0, stream>>>(
      state, chunks, count, count_step, float(draws), beta, one_minus_beta);
  check_launch("step_natural_gradient");
}

void spread_rest(const NaturalGradient& state, const Chunks& rest, Stream stream) {
  if (rest.count == 0) return;
  spread_rest_kernel<<<grid_of(rest, state.clients), kThreads, 0, stream>>>(state, rest);
  check_launch("spread_rest");
}

}  // namespace fedep::gpu
