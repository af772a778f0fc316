#include "fedep/cuda/round/moment_kernels.h"

#include <cmath>

#include "fedep/cuda/device/groups.cuh"
#include "fedep/cuda/device/launch.h"
#include "fedep/inference/elements.h"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 256;

__device__ float precision(const Moments& m, float squares) {
  return sample_precision(squares, m.samples_less_one, m.one_less_shrinkage, m.shrinkage);
}

__device__ double warp_sum(double value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(0xffffffffu, value, lane);
  return value;
}

// One block's sum, in its first thread.
__device__ double block_sum(double value) {
  __shared__ double parts[kThreads / 32];
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < kThreads / 32; ++w) total += parts[w];
  return total;
}

// All groups of a client's elements.
template <class Work>
__device__ void for_each_group_of(const Moments& m, const Work& work) {
  const std::size_t first = std::size_t(blockIdx.x) * kThreads + threadIdx.x;
  for_each_group(first, std::size_t(gridDim.x) * kThreads, m.size, work);
}

// Σ λ, Σ λ² before clipping, and Σ (cavity + added)².
__global__ void __launch_bounds__(kThreads) first_sums_kernel(Moments m) {
  const int c = blockIdx.y;
  const float* const cavity = m.cavity[c];
  const float cavity_number = m.cavity_number[c], added = m.added[c];
  double sum = 0, squares = 0, identity = 0;
  for_each_group_of(m, [&](const Group& group) {
    float own_squares[kAtOnce], own_cavity[kAtOnce];
    group.each([&](int j, std::size_t i) {
      own_squares[j] = m.squares[c * m.stride + i];
      if (m.rescale) own_cavity[j] = cavity != nullptr ? cavity[i] : cavity_number;
    });
    group.each([&](int j, std::size_t) {
      const double x = precision(m, own_squares[j]);
      sum += x;
      squares += x * x;
      if (m.rescale) {
        const double y = own_cavity[j] + added;
        identity += y * y;
      }
    });
  });
  const double totals[3] = {block_sum(sum), block_sum(squares), block_sum(identity)};
  if (threadIdx.x == 0) {
    double* const to = m.partial + (std::size_t(c) * kMomentPartials + blockIdx.x) * 3;
    for (int k = 0; k < 3; ++k) to[k] = totals[k];
  }
}

__device__ double total_of(const Moments& m, int c, int which) {
  double total = 0;
  for (int k = 0; k < kMomentPartials; ++k) {
    total += m.partial[(std::size_t(c) * kMomentPartials + k) * 3 + which];
  }
  return total;
}

__global__ void bounds_kernel(Moments m) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= m.clients) return;
  float low = -INFINITY, high = INFINITY;
  if (m.clip_width > 0) {
    const double d = double(m.size), average = total_of(m, c, 0) / d;
    const double spread = sqrt(fmax(0.0, total_of(m, c, 1) / d - average * average));
    low = float(average - m.clip_width * spread);
    high = float(average + m.clip_width * spread);
  }
  m.bounds[3 * c] = low;
  m.bounds[3 * c + 1] = high;
  m.bounds[3 * c + 2] = 1.0f;
}

// Σ λ² after clipping, into the first of the three.
__global__ void __launch_bounds__(kThreads) clipped_sums_kernel(Moments m) {
  const int c = blockIdx.y;
  const float low = m.bounds[3 * c], high = m.bounds[3 * c + 1];
  double squares = 0;
  for_each_group_of(m, [&](const Group& group) {
    float own_squares[kAtOnce];
    group.each([&](int j, std::size_t i) { own_squares[j] = m.squares[c * m.stride + i]; });
    group.each([&](int j, std::size_t) {
      const double x = clamped(precision(m, own_squares[j]), low, high);
      squares += x * x;
    });
  });
  const double total = block_sum(squares);
  if (threadIdx.x == 0) {
    m.partial[(std::size_t(c) * kMomentPartials + blockIdx.x) * 3] = total;
  }
}

__global__ void factor_kernel(Moments m) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= m.clients) return;
  m.bounds[3 * c + 2] = float(sqrt(total_of(m, c, 2)) / sqrt(total_of(m, c, 0)));
}

__global__ void __launch_bounds__(kThreads)
    write_kernel(Moments m, float* const* eta, float* const* lambda) {
  const int c = blockIdx.y;
  const float low = m.bounds[3 * c], high = m.bounds[3 * c + 1], factor = m.bounds[3 * c + 2];
  float* const own_eta = eta[c];
  float* const own_lambda = lambda[c];
  for_each_group_of(m, [&](const Group& group) {
    float squares[kAtOnce], mean[kAtOnce];
    group.each([&](int j, std::size_t i) {
      squares[j] = m.squares[c * m.stride + i];
      mean[j] = m.mean[c * m.stride + i];
    });
    group.each([&](int j, std::size_t i) {
      float x = clamped(precision(m, squares[j]), low, high);
      if (m.rescale) x = factor * x;
      own_lambda[i] = x;
      own_eta[i] = x * mean[j];
    });
  });
}

}  // namespace

void sample_moments(const Moments& m, float* const* eta, float* const* lambda, Stream stream) {
  const dim3 grid(kMomentPartials, unsigned(m.clients));
  const unsigned blocks = unsigned(m.clients + 31) / 32;
  if (m.clip_width > 0 || m.rescale) {
    first_sums_kernel<<<grid, kThreads, 0, stream>>>(m);
    check_launch("first_sums");
  }
  bounds_kernel<<<blocks, 32, 0, stream>>>(m);
  check_launch("bounds");
  if (m.rescale) {
    clipped_sums_kernel<<<grid, kThreads, 0, stream>>>(m);
    check_launch("clipped_sums");
    factor_kernel<<<blocks, 32, 0, stream>>>(m);
    check_launch("factor");
  }
  write_kernel<<<grid, kThreads, 0, stream>>>(m, eta, lambda);
  check_launch("sample_moments");
}

}  // namespace fedep::gpu
