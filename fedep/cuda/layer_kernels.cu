#include "fedep/cuda/layer_kernels.h"

#include <type_traits>

#include "fedep/cuda/early_launch.cuh"
#include "fedep/cuda/launch.h"
#include "fedep/cuda/random.cuh"

namespace fedep::gpu {
namespace {

constexpr float kEpsilon = 1e-3f;  // of the norms
constexpr int kWarps = 8;          // of a block whose warps work alone
constexpr int kMostWarps = 32;     // of any block
constexpr unsigned kAll = 0xFFFFFFFFu;

__device__ inline float sum_over_warp(float x) {
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(kAll, x, step);
  return x;
}
__device__ inline float max_over_warp(float x) {
  for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(kAll, x, step));
  return x;
}

// A warp for every example of a client, as far as a block goes.
unsigned threads_for_rows(const CohortShape& cohort) {
  return unsigned(cohort.rows < kMostWarps ? cohort.rows : kMostWarps) * 32;
}

// max(x, 0) as a convolution takes it.
__device__ inline float rectified_part(float x, bool round) {
  const float y = fmaxf(x, 0.0f);
  return round ? __uint_as_float((__float_as_uint(y) + 0x1000u) & 0xFFFFE000u) : y;
}

unsigned blocks_for(std::size_t items, unsigned threads) {
  return unsigned((items + threads - 1) / threads);
}

// ---- norms: a warp per group. A group's values are `segments` runs of `length`, `channels` apart.
// ----

struct Group {
  std::size_t begin;
  int segments, length, channels;

  __device__ std::size_t at(int i) const {
    const int segment = i / length;
    return begin + std::size_t(segment) * std::size_t(channels) + std::size_t(i - segment * length);
  }
  __device__ int size() const { return segments * length; }
};

__device__ inline Group group_of(const NormShape& s, std::size_t index) {
  const int half = s.channels / 2;
  const std::size_t map = std::size_t(s.per_position ? 1 : s.positions) * std::size_t(s.channels);
  return {(index / 2) * map + std::size_t(index % 2) * std::size_t(half),
          s.per_position ? 1 : s.positions, half, s.channels};
}

__global__ void normalise_kernel(NormShape s, std::size_t groups, const float* x, float* y,
                                 float* rectified, bool round, float* inverse_std) {
  const std::size_t index = std::size_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= groups) return;
  const int lane = int(threadIdx.x) & 31;
  const Group group = group_of(s, index);
  const float share = 1.0f / float(group.size());
  float sum = 0.0f;
  for (int i = lane; i < group.size(); i += 32) sum += x[group.at(i)];
  const float mean = sum_over_warp(sum) * share;
  float squares = 0.0f;
  for (int i = lane; i < group.size(); i += 32) {
    const float centred = x[group.at(i)] - mean;
    squares += centred * centred;
  }
  const float scale = 1.0f / sqrtf(sum_over_warp(squares) * share + kEpsilon);
  if (lane == 0) inverse_std[index] = scale;
  for (int i = lane; i < group.size(); i += 32) {
    const std::size_t at = group.at(i);
    const float value = (x[at] - mean) * scale;
    y[at] = value;
    if (rectified != nullptr) rectified[at] = rectified_part(value, round);
  }
}

// At each position: groups are runs of kLanes × kFours × 4 neighbouring values, held in registers
// by kLanes threads.
template <int kLanes>
__device__ inline float sum_over_lanes(float x) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step >>= 1) x += __shfl_xor_sync(kAll, x, step);
  return x;
}
__device__ inline float sum_of(const float4& v) { return (v.x + v.y) + (v.z + v.w); }

template <int kLanes, int kFours>
__global__ void normalise_runs(unsigned groups, const float4* x, float4* y, float4* rectified,
                               bool round, float* inverse_std) {
  wait_for_previous();
  allow_next();
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned group = thread / kLanes, lane = thread % kLanes;
  const bool active = group < groups;
  const float4* const from = x + std::size_t(active ? group : 0) * (kLanes * kFours) + lane;
  constexpr float kShare = 1.0f / float(kLanes * kFours * 4);
  float4 v[kFours];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = from[i * kLanes];
    sum += sum_of(v[i]);
  }
  const float mean = sum_over_lanes<kLanes>(sum) * kShare;
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = make_float4(v[i].x - mean, v[i].y - mean, v[i].z - mean, v[i].w - mean);
    squares += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
  }
  const float scale = 1.0f / sqrtf(sum_over_lanes<kLanes>(squares) * kShare + kEpsilon);
  if (!active) return;
  if (lane == 0) inverse_std[group] = scale;
  const std::size_t to = std::size_t(group) * (kLanes * kFours) + lane;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const float4 value =
        make_float4(v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale);
    y[to + i * kLanes] = value;
    if (rectified == nullptr) continue;
    rectified[to + i * kLanes] =
        make_float4(rectified_part(value.x, round), rectified_part(value.y, round),
                    rectified_part(value.z, round), rectified_part(value.w, round));
  }
}

template <int kLanes, int kFours>
__global__ void normalise_runs_backward(unsigned groups, const float4* y, const float* inverse_std,
                                        bool rectified, const float4* dy, const float4* base,
                                        float4* dx) {
  wait_for_previous();
  allow_next();
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned group = thread / kLanes, lane = thread % kLanes;
  const bool active = group < groups;
  const std::size_t begin = std::size_t(active ? group : 0) * (kLanes * kFours) + lane;
  constexpr float kShare = 1.0f / float(kLanes * kFours * 4);
  float4 v[kFours], d[kFours];
  float sum = 0.0f, products = 0.0f;
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = y[begin + i * kLanes];
    d[i] = dy[begin + i * kLanes];
    if (rectified) {
      d[i] = make_float4(v[i].x > 0.0f ? d[i].x : 0.0f, v[i].y > 0.0f ? d[i].y : 0.0f,
                         v[i].z > 0.0f ? d[i].z : 0.0f, v[i].w > 0.0f ? d[i].w : 0.0f);
    }
    sum += sum_of(d[i]);
    products += (d[i].x * v[i].x + d[i].y * v[i].y) + (d[i].z * v[i].z + d[i].w * v[i].w);
  }
  sum = sum_over_lanes<kLanes>(sum) * kShare;
  products = sum_over_lanes<kLanes>(products) * kShare;
  if (!active) return;
  const float scale = inverse_std[group];
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const float4 b = base == nullptr ? make_float4(0, 0, 0, 0) : base[begin + i * kLanes];
    dx[begin + i * kLanes] = make_float4(b.x + scale * (d[i].x - sum - v[i].x * products),
                                         b.y + scale * (d[i].y - sum - v[i].y * products),
                                         b.z + scale * (d[i].z - sum - v[i].z * products),
                                         b.w + scale * (d[i].w - sum - v[i].w * products));
  }
}

// Calls launch(lanes, fours) with the constants for runs of `length` values; false if there are
// none.
template <class Launch>
bool for_run_length(int length, const Launch& launch) {
  using std::integral_constant;
  constexpr integral_constant<int, 1> one{};
  switch (length) {
    case 4:
      launch(one, one);
      return true;
    case 8:
      launch(integral_constant<int, 2>{}, one);
      return true;
    case 16:
      launch(integral_constant<int, 4>{}, one);
      return true;
    case 32:
      launch(integral_constant<int, 8>{}, one);
      return true;
    case 64:
      launch(integral_constant<int, 16>{}, one);
      return true;
    case 128:
      launch(integral_constant<int, 32>{}, one);
      return true;
    case 256:
      launch(integral_constant<int, 32>{}, integral_constant<int, 2>{});
      return true;
    default:
      return false;
  }
}

__global__ void normalise_backward_kernel(NormShape s, std::size_t groups, const float* y,
                                          const float* inverse_std, bool rectified, const float* dy,
                                          const float* base, float* dx) {
  const std::size_t index = std::size_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= groups) return;
  const int lane = int(threadIdx.x) & 31;
  const Group group = group_of(s, index);
  const float share = 1.0f / float(group.size());
  float sum = 0.0f, products = 0.0f;
  for (int i = lane; i < group.size(); i += 32) {
    const std::size_t at = group.at(i);
    const float value = y[at];
    const float d = rectified && !(value > 0.0f) ? 0.0f : dy[at];
    sum += d;
    products += d * value;
  }
  sum = sum_over_warp(sum) * share;
  products = sum_over_warp(products) * share;
  const float scale = inverse_std[index];
  for (int i = lane; i < group.size(); i += 32) {
    const std::size_t at = group.at(i);
    const float value = y[at];
    const float d = rectified && !(value > 0.0f) ? 0.0f : dy[at];
    const float derivative = scale * (d - sum - value * products);
    dx[at] = base == nullptr ? derivative : base[at] + derivative;
  }
}

// ---- pools ----

// Four channels a thread.
__global__ void max_pool_kernel(PoolShape s, unsigned fours, const float4* x, float4* y,
                                uchar4* source) {
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
  y[i] = best;
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
// row's runs of
// kernel × in values are neighbours there.
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

__global__ void add_bias_rectify_kernel(int channels, std::size_t per_client, const float* bias,
                                        std::size_t stride, float* y) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= per_client) return;
  const std::size_t client = blockIdx.y;
  float& value = y[client * per_client + i];
  value = fmaxf(value + bias[client * stride + i % unsigned(channels)], 0.0f);
}

// ---- losses: a block per client, its warps take turns at the examples ----

__global__ void softmax_delta_kernel(int outputs, CohortShape cohort, const std::int32_t* labels,
                                     DeltaScale scale, float* logits, double* loss) {
  __shared__ double losses[kMostWarps];
  const int warps = int(blockDim.x) / 32;
  const int client = int(blockIdx.x), warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) & 31;
  const int count = cohort.counts[client];
  const float factor = scale == DeltaScale::batch_mean && count > 0 ? 1.0f / float(count) : 1.0f;
  double sum = 0;
  for (int row = warp; row < cohort.rows; row += warps) {
    const std::size_t example = std::size_t(client) * std::size_t(cohort.rows) + std::size_t(row);
    float* const z = logits + example * std::size_t(outputs);
    if (row >= count) {
      for (int i = lane; i < outputs; i += 32) z[i] = 0.0f;
      continue;
    }
    float top = z[0];
    for (int i = lane; i < outputs; i += 32) top = fmaxf(top, z[i]);
    top = max_over_warp(top);
    float total = 0.0f;
    for (int i = lane; i < outputs; i += 32) total += expf(z[i] - top);
    total = sum_over_warp(total);
    const int label = labels[example];
    if (lane == 0) sum += double(top) + log(double(total)) - double(z[label]);
    __syncwarp();
    for (int i = lane; i < outputs; i += 32) {
      const float p = expf(z[i] - top) / total;
      z[i] = factor * (i == label ? p - 1.0f : p);
    }
  }
  if (lane == 0) losses[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0 && loss != nullptr && count > 0) {
    double all = 0;
    for (int i = 0; i < warps; ++i) all += losses[i];
    loss[client] += all / double(count);
  }
}

__global__ void draw_labels_kernel(int outputs, CohortShape cohort, const StreamAddress* streams,
                                   const float* logits, std::int32_t* labels) {
  const int client = int(blockIdx.x), warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) & 31;
  for (int row = warp; row < cohort.counts[client]; row += int(blockDim.x) / 32) {
    const std::size_t example = std::size_t(client) * std::size_t(cohort.rows) + std::size_t(row);
    const float* const z = logits + example * std::size_t(outputs);
    float top = z[0];
    for (int i = lane; i < outputs; i += 32) top = fmaxf(top, z[i]);
    top = max_over_warp(top);
    float total = 0.0f;
    for (int i = lane; i < outputs; i += 32) total += expf(z[i] - top);
    total = sum_over_warp(total);
    const double uniform = uniform_at(streams[client], std::uint64_t(row));
    int drawn = outputs - 1;
    double below = 0;  // of classes before `base`
    for (int base = 0; base < outputs; base += 32) {
      const int i = base + lane;
      double reached = i < outputs ? double(expf(z[i] - top) / total) : 0.0;
      for (int step = 1; step < 32; step <<= 1) {
        const double before = __shfl_up_sync(kAll, reached, step);
        if (lane >= step) reached += before;
      }
      const unsigned vote = __ballot_sync(kAll, i < outputs && uniform < below + reached);
      if (vote != 0) {
        drawn = min(base + __ffs(int(vote)) - 1, outputs - 1);
        break;
      }
      below += __shfl_sync(kAll, reached, 31);
    }
    if (lane == 0) labels[example] = drawn;
  }
}

// Sixteen units a block of the stream, a byte each (model/elementwise.h's fill_dropout).
__global__ void drop_out_kernel(int per_example, std::size_t first, std::size_t units,
                                std::uint32_t dropped, float kept, CohortShape cohort,
                                const StreamAddress* streams, float* values) {
  const int chunk = int(blockIdx.x * blockDim.x + threadIdx.x);
  const int client = int(blockIdx.z), row = int(blockIdx.y);
  if (chunk * 16 >= per_example || row >= cohort.counts[client]) return;
  const Words words = philox_block(
      streams[client], (std::uint64_t(row) * units + first) / 16 + std::uint64_t(chunk));
  float* const out = values + (std::size_t(client) * std::size_t(cohort.rows) + std::size_t(row)) *
                                  std::size_t(per_example);
  for (int j = 0; j < 16 && chunk * 16 + j < per_example; ++j) {
    const std::uint32_t byte = (word_of(words, unsigned(j) / 4) >> (8 * (j % 4))) & 0xFFu;
    out[chunk * 16 + j] *= byte < dropped ? 0.0f : kept;
  }
}

// ---- biases: 32 outputs a block, 32 threads share the rows ----

constexpr int kBiasRows = 32;

template <bool kSquares>
__global__ void bias_kernel(int positions, int out, CohortShape cohort, const float* dy, Update u,
                            float* sum) {
  __shared__ float parts[kBiasRows][32];
  const int client = int(blockIdx.y), o = int(blockIdx.x) * 32 + int(threadIdx.x);
  const int count = cohort.counts[client];
  if (count == 0) return;
  const float* const from =
      dy + std::size_t(client) * std::size_t(cohort.rows) * std::size_t(positions * out);
  float total = 0.0f;
  if (o < out) {
    if (kSquares) {
      for (int image = int(threadIdx.y); image < count; image += kBiasRows) {
        float gradient = 0.0f;
        for (int p = 0; p < positions; ++p) {
          gradient += from[std::size_t(image * positions + p) * std::size_t(out) + std::size_t(o)];
        }
        total += gradient * gradient;
      }
    } else {
      for (int row = int(threadIdx.y); row < count * positions; row += kBiasRows) {
        total += from[std::size_t(row) * std::size_t(out) + std::size_t(o)];
      }
    }
  }
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || o >= out) return;
  for (int i = 1; i < kBiasRows; ++i) total += parts[i][threadIdx.x];
  const std::size_t at = std::size_t(client) * u.stride + std::size_t(o);
  if (kSquares) {
    sum[at] += total / float(count);
    return;
  }
  const float lambda = u.diagonal ? u.lambda[at] : u.lambda[client];
  const float eta = u.eta == nullptr ? 0.0f : u.eta[at];
  const float momentum =
      u.mu * u.momentum[at] + total + (lambda * u.theta[at] - eta) * u.per_example[client];
  u.momentum[at] = momentum;
  u.theta[at] -= u.lr * momentum;
}

}  // namespace

void normalise(const NormShape& s, int n, const float* x, float* y, float* rectified, bool round,
               float* inverse_std, Stream stream) {
  const std::size_t groups = std::size_t(n) * 2 * std::size_t(s.per_position ? s.positions : 1);
  const bool done =
      s.per_position && for_run_length(s.channels / 2, [&](auto lanes, auto fours) {
        launch_early(normalise_runs<lanes(), fours()>, blocks_for(groups * lanes(), 256), 256, 0,
                     stream, unsigned(groups), reinterpret_cast<const float4*>(x),
                     reinterpret_cast<float4*>(y), reinterpret_cast<float4*>(rectified), round,
                     inverse_std);
      });
  if (done) return check_launch("normalise_runs");
  normalise_kernel<<<blocks_for(groups, kWarps), kWarps * 32, 0, stream>>>(
      s, groups, x, y, rectified, round, inverse_std);
  check_launch("normalise");
}

void normalise_backward(const NormShape& s, int n, const float* y, const float* inverse_std,
                        bool rectified, const float* dy, const float* base, float* dx,
                        Stream stream) {
  const std::size_t groups = std::size_t(n) * 2 * std::size_t(s.per_position ? s.positions : 1);
  const bool done =
      s.per_position && for_run_length(s.channels / 2, [&](auto lanes, auto fours) {
        launch_early(normalise_runs_backward<lanes(), fours()>, blocks_for(groups * lanes(), 256),
                     256, 0, stream, unsigned(groups), reinterpret_cast<const float4*>(y),
                     inverse_std, rectified, reinterpret_cast<const float4*>(dy),
                     reinterpret_cast<const float4*>(base), reinterpret_cast<float4*>(dx));
      });
  if (done) return check_launch("normalise_runs_backward");
  normalise_backward_kernel<<<blocks_for(groups, kWarps), kWarps * 32, 0, stream>>>(
      s, groups, y, inverse_std, rectified, dy, base, dx);
  check_launch("normalise_backward");
}

void max_pool(const PoolShape& s, int n, const float* x, float* y, std::uint8_t* source,
              Stream stream) {
  const unsigned fours =
      unsigned(n) * unsigned(s.out_height * s.out_width) * unsigned(s.channels / 4);
  max_pool_kernel<<<blocks_for(fours, 256), 256, 0, stream>>>(
      s, fours, reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y),
      reinterpret_cast<uchar4*>(source));
  check_launch("max_pool");
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

void add_bias_rectify(int channels, int per_example, const CohortShape& cohort, const float* bias,
                      std::size_t stride, float* y, Stream stream) {
  const std::size_t per_client = std::size_t(cohort.rows) * std::size_t(per_example);
  const dim3 grid(blocks_for(per_client, 256), unsigned(cohort.clients));
  add_bias_rectify_kernel<<<grid, 256, 0, stream>>>(channels, per_client, bias, stride, y);
  check_launch("add_bias_rectify");
}

void softmax_delta(int outputs, const CohortShape& cohort, const std::int32_t* labels,
                   DeltaScale scale, float* logits, double* loss, Stream stream) {
  softmax_delta_kernel<<<unsigned(cohort.clients), threads_for_rows(cohort), 0, stream>>>(
      outputs, cohort, labels, scale, logits, loss);
  check_launch("softmax_delta");
}

void draw_labels(int outputs, const CohortShape& cohort, const StreamAddress* streams,
                 const float* logits, std::int32_t* labels, Stream stream) {
  draw_labels_kernel<<<unsigned(cohort.clients), threads_for_rows(cohort), 0, stream>>>(
      outputs, cohort, streams, logits, labels);
  check_launch("draw_labels");
}

void drop_out(int per_example, std::size_t first, std::size_t units, float rate,
              const CohortShape& cohort, const StreamAddress* streams, float* values,
              Stream stream) {
  const unsigned chunks = unsigned((per_example + 15) / 16);
  const dim3 grid((chunks + 127) / 128, unsigned(cohort.rows), unsigned(cohort.clients));
  drop_out_kernel<<<grid, 128, 0, stream>>>(per_example, first, units, std::uint32_t(rate * 256.0f),
                                            1.0f / (1.0f - rate), cohort, streams, values);
  check_launch("drop_out");
}

void update_bias(int positions, int out, const CohortShape& cohort, const float* dy,
                 const Update& u, Stream stream) {
  const dim3 grid(unsigned((out + 31) / 32), unsigned(cohort.clients));
  bias_kernel<false>
      <<<grid, dim3(32, kBiasRows), 0, stream>>>(positions, out, cohort, dy, u, nullptr);
  check_launch("update_bias");
}

void add_bias_squares(int positions, int out, const CohortShape& cohort, const float* dy,
                      float* sum, std::size_t stride, Stream stream) {
  Update u;
  u.stride = stride;
  const dim3 grid(unsigned((out + 31) / 32), unsigned(cohort.clients));
  bias_kernel<true><<<grid, dim3(32, kBiasRows), 0, stream>>>(positions, out, cohort, dy, u, sum);
  check_launch("add_bias_squares");
}

}  // namespace fedep::gpu
