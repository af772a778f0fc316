// Pools, neighbourhoods as rows, and other steps between maps.
#include "fedep/cuda/network/layer_kernels.h"

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/warp.cuh"
#include "fedep/cuda/network/dropout.cuh"

namespace fedep::gpu {
namespace {

// What becomes of an image's largest values, four neighbours at a time: nothing, or bias, rectifier
// and dropout. These keep the order of values, so they may come after the pool.
struct Unchanged {
  __device__ float4 operator()(float4 value, unsigned, unsigned, unsigned) const { return value; }
};

struct BiasRectifyDrop {
  const float* bias;
  std::size_t stride;
  CohortShape cohort;
  DropoutBytes dropout;

  __device__ float4 operator()(float4 value, unsigned image, unsigned four,
                               unsigned channel) const {
    const unsigned client = image / unsigned(cohort.rows);
    const unsigned row = image - client * unsigned(cohort.rows);
    const float* const own = bias + client / unsigned(cohort.sharing) * stride + channel;
    value.x = fmaxf(value.x + own[0], 0.0f);
    value.y = fmaxf(value.y + own[1], 0.0f);
    value.z = fmaxf(value.z + own[2], 0.0f);
    value.w = fmaxf(value.w + own[3], 0.0f);
    if (dropout.streams != nullptr && int(row) < cohort.counts[client]) {
      const std::uint32_t word = word_of(dropout.block(int(client), int(row), four / 4), four % 4);
      value.x *= dropout.factor(word, 0);
      value.y *= dropout.factor(word, 1);
      value.z *= dropout.factor(word, 2);
      value.w *= dropout.factor(word, 3);
    }
    return value;
  }
};

// Four channels a thread.
template <class After>
__global__ void max_pool_kernel(PoolShape s, unsigned fours, const float4* x, After after,
                                float4* y, uchar4* source) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= fours) return;
  const unsigned width = unsigned(s.channels) / 4, c = i % width, place = i / width;
  const unsigned positions = unsigned(s.out_height * s.out_width);
  const unsigned image = place / positions, position = place - image * positions;
  const int oy = int(position / unsigned(s.out_width)), ox = int(position) - oy * s.out_width;
  const int top = oy * s.stride - s.pad_top, left = ox * s.stride - s.pad_left;
  const float4* const map = x + std::size_t(image) * (unsigned(s.height * s.width) * width) + c;
  float4 best = make_float4(0, 0, 0, 0);
  uchar4 from = make_uchar4(255, 255, 255, 255);
  const auto take = [](float value, int k, float& largest, unsigned char& where) {
    if (where == 255 || value > largest) {
      largest = value;
      where = static_cast<unsigned char>(k);
    }
  };
  for (int ky = 0; ky < s.window; ++ky) {
    for (int kx = 0; kx < s.window; ++kx) {
      const int iy = top + ky, ix = left + kx, k = ky * s.window + kx;
      if (iy < 0 || ix < 0 || iy >= s.height || ix >= s.width) continue;
      const float4 value = map[std::size_t(iy * s.width + ix) * width];
      take(value.x, k, best.x, from.x);
      take(value.y, k, best.y, from.y);
      take(value.z, k, best.z, from.z);
      take(value.w, k, best.w, from.w);
    }
  }
  y[i] = after(best, image, position * width + c, 4 * c);
  source[i] = from;
}

// Gathered: an input sums over the windows whose largest it was.
__global__ void max_pool_backward_kernel(PoolShape s, unsigned fours, const float4* dy,
                                         const uchar4* source, float4* dx) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= fours) return;
  const unsigned width = unsigned(s.channels) / 4, c = i % width, place = i / width;
  const unsigned positions = unsigned(s.height * s.width);
  const unsigned image = place / positions, position = place - image * positions;
  const int iy = int(position / unsigned(s.width)) + s.pad_top;
  const int ix = int(position % unsigned(s.width)) + s.pad_left;
  const std::size_t map = std::size_t(image) * (unsigned(s.out_height * s.out_width) * width) + c;
  float4 sum = make_float4(0, 0, 0, 0);
  // Windows that begin at most window - 1 before.
  for (int oy = max(0, (iy - s.window + s.stride) / s.stride);
       oy < s.out_height && oy * s.stride <= iy; ++oy) {
    for (int ox = max(0, (ix - s.window + s.stride) / s.stride);
         ox < s.out_width && ox * s.stride <= ix; ++ox) {
      const int ky = iy - oy * s.stride, kx = ix - ox * s.stride;
      if (ky >= s.window || kx >= s.window) continue;
      const int k = ky * s.window + kx;
      const std::size_t at = map + std::size_t(oy * s.out_width + ox) * width;
      const uchar4 from = source[at];
      const float4 d = dy[at];
      if (from.x == k) sum.x += d.x;
      if (from.y == k) sum.y += d.y;
      if (from.z == k) sum.z += d.z;
      if (from.w == k) sum.w += d.w;
    }
  }
  dx[i] = sum;
}

// A block makes the rows of one image, which it keeps in shared memory with zeros around it: a
// row's runs of kernel × in values are neighbours there.
__global__ void copy_out_patches_kernel(Geometry g, int width, const float* x, float4* patches) {
  extern __shared__ float padded[];
  const int pitch = (g.width + g.kernel) * g.in, lines = g.height + g.kernel;
  for (int i = int(threadIdx.x); i < pitch * lines; i += int(blockDim.x)) padded[i] = 0.0f;
  __syncthreads();
  const float* const map = x + std::size_t(blockIdx.x) * unsigned(g.height * g.width * g.in);
  const int line = g.width * g.in;
  for (int i = int(threadIdx.x); i < g.height * line; i += int(blockDim.x)) {
    const int y = i / line;
    padded[(y + g.pad_top) * pitch + g.pad_left * g.in + i - y * line] = map[i];
  }
  __syncthreads();
  const int row = g.kernel * g.in, size = g.kernel * row;
  const int positions = g.out_height * g.out_width;
  float4* const to = patches + std::size_t(blockIdx.x) * std::size_t(positions * width);
  for (int i = int(threadIdx.x); i < positions * width; i += int(blockDim.x)) {
    const int position = i / width, four = i - position * width;
    const int oy = position / g.out_width, ox = position - oy * g.out_width;
    const float* const corner = padded + oy * g.stride * pitch + ox * g.stride * g.in;
    int ky = four * 4 / row, rest = four * 4 - ky * row;
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      values[j] = four * 4 + j < size ? corner[ky * pitch + rest] : 0.0f;
      if (++rest == row) {
        rest = 0;
        ++ky;
      }
    }
    to[i] = make_float4(values[0], values[1], values[2], values[3]);
  }
}

__global__ void mean_rectified_kernel(int positions, int channels, std::size_t size, const float* y,
                                      float* mean) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const std::size_t image = i / unsigned(channels), c = i % unsigned(channels);
  const float* from = y + image * std::size_t(positions) * std::size_t(channels) + c;
  float sum = 0.0f;
  for (int p = 0; p < positions; ++p)
    sum += fmaxf(from[std::size_t(p) * std::size_t(channels)], 0.0f);
  mean[i] = sum / float(positions);
}

__global__ void spread_mean_kernel(int positions, int channels, std::size_t size,
                                   const float* d_mean, float* dy) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const std::size_t image = i / (std::size_t(positions) * std::size_t(channels));
  dy[i] = d_mean[image * std::size_t(channels) + i % unsigned(channels)] / float(positions);
}

template <class After>
void launch_max_pool(const PoolShape& s, int n, const float* x, const After& after, float* y,
                     std::uint8_t* source, Stream stream) {
  const unsigned fours =
      unsigned(n) * unsigned(s.out_height * s.out_width) * unsigned(s.channels / 4);
  max_pool_kernel<<<blocks_for(fours, 256), 256, 0, stream>>>(
      s, fours, reinterpret_cast<const float4*>(x), after, reinterpret_cast<float4*>(y),
      reinterpret_cast<uchar4*>(source));
  check_launch("max_pool");
}

}  // namespace

void max_pool(const PoolShape& s, int n, const float* x, float* y, std::uint8_t* source,
              Stream stream) {
  launch_max_pool(s, n, x, Unchanged(), y, source, stream);
}

void max_pool_rectify(const PoolShape& s, const CohortShape& cohort, const float* x,
                      const float* bias, std::size_t stride, const Dropout& dropout, float* y,
                      std::uint8_t* source, Stream stream) {
  launch_max_pool(s, cohort.clients * cohort.rows, x,
                  BiasRectifyDrop{bias, stride, cohort, DropoutBytes(dropout)}, y, source, stream);
}

void max_pool_backward(const PoolShape& s, int n, const float* dy, const std::uint8_t* source,
                       float* dx, Stream stream) {
  const unsigned fours = unsigned(n) * unsigned(s.height * s.width) * unsigned(s.channels / 4);
  max_pool_backward_kernel<<<blocks_for(fours, 256), 256, 0, stream>>>(
      s, fours, reinterpret_cast<const float4*>(dy), reinterpret_cast<const uchar4*>(source),
      reinterpret_cast<float4*>(dx));
  check_launch("max_pool_backward");
}

void copy_out_patches(const Geometry& g, int n, const float* x, float* patches, Stream stream) {
  const int width = (g.kernel * g.kernel * g.in + 3) / 4;
  const std::size_t bytes =
      std::size_t((g.width + g.kernel) * (g.height + g.kernel) * g.in) * sizeof(float);
  if (bytes > 48 * 1024) {
    allow_shared_memory(reinterpret_cast<const void*>(copy_out_patches_kernel), int(bytes));
  }
  copy_out_patches_kernel<<<unsigned(n), 256, bytes, stream>>>(g, width, x,
                                                               reinterpret_cast<float4*>(patches));
  check_launch("copy_out_patches");
}

void mean_rectified(int positions, int channels, int n, const float* y, float* mean,
                    Stream stream) {
  const std::size_t size = std::size_t(n) * std::size_t(channels);
  mean_rectified_kernel<<<blocks_for(size, 256), 256, 0, stream>>>(positions, channels, size, y,
                                                                   mean);
  check_launch("mean_rectified");
}

void spread_mean(int positions, int channels, int n, const float* d_mean, float* dy,
                 Stream stream) {
  const std::size_t size = std::size_t(n) * std::size_t(positions) * std::size_t(channels);
  spread_mean_kernel<<<blocks_for(size, 256), 256, 0, stream>>>(positions, channels, size, d_mean,
                                                                dy);
  check_launch("spread_mean");
}

}  // namespace fedep::gpu
