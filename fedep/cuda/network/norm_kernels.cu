// Norms, forward and backward.
#include "fedep/cuda/network/layer_kernels.h"

#include <type_traits>

#include "fedep/cuda/device/early_launch.cuh"
#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/warp.cuh"
#include "fedep/cuda/network/product.cuh"

namespace fedep::gpu {
namespace {

constexpr float kEpsilon = 1e-3f;

// max(x, 0) as a convolution takes it.
__device__ inline float rectified_part(float x, bool round) {
  const float y = fmaxf(x, 0.0f);
  return round ? rounded_to_tf32(y) : y;
}

// A warp per group. A group's values are `segments` runs of `length`, `channels` apart.
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
  for (int step = kLanes / 2; step > 0; step >>= 1) x += __shfl_xor_sync(kAllLanes, x, step);
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

}  // namespace fedep::gpu
