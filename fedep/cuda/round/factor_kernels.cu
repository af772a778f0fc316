#include "fedep/cuda/round/factor_kernels.h"

#include <cuda_runtime.h>

#include "fedep/cuda/device/groups.cuh"
#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/reduce.cuh"

namespace fedep::gpu {
namespace {

constexpr unsigned kThreads = 256;

__global__ void add_kernel(FactorPart factor, std::size_t n, double* sum) {
  const std::size_t first = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for_each_group(first, stride, n, [&](const Group& group) {
    float x[kAtOnce];
    double total[kAtOnce];
    group.each([&](int j, std::size_t i) {
      x[j] = factor.part[i];
      total[j] = sum[i];
    });
    if (factor.momentum != nullptr) {
      group.each(
          [&](int j, std::size_t i) { x[j] = caught_up(factor.missed, x[j], factor.momentum[i]); });
    }
    group.each([&](int j, std::size_t i) { sum[i] = total[j] + double(factor.times * x[j]); });
  });
}

}  // namespace

void add_factor(const FactorPart& factor, std::size_t n, double* sum, CUstream_st* stream) {
  if (n == 0) return;
  add_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(factor, n, sum);
  check_launch("add_factor");
}

}  // namespace fedep::gpu
