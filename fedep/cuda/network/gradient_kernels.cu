#include "fedep/cuda/network/gradient_kernels.h"

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/random.cuh"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 256;
constexpr std::size_t kMostBlocks = 1024;

unsigned blocks_for(std::size_t size) {
  const std::size_t blocks = (size + kThreads - 1) / kThreads;
  return unsigned(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__global__ void __launch_bounds__(kThreads)
    update_from_gradient_kernel(const float* gradient, std::size_t size, int client,
                                const std::int32_t* count, Update u) {
  if (*count == 0) return;
  const float per_example = u.per_example[client];
  const float rate = u.rate != nullptr ? u.rate[client] : u.lr;
  const std::size_t row = std::size_t(client) * u.stride;
  for (std::size_t i = blockIdx.x * kThreads + threadIdx.x; i < size; i += gridDim.x * kThreads) {
    const std::size_t at = row + i;
    const float g = gradient == nullptr ? 0.0f : gradient[i];
    const float lambda = u.diagonal ? u.lambda[at] : u.lambda[client];
    const float eta = u.eta == nullptr ? 0.0f : u.eta[at];
    const float m = u.mu * u.momentum[at] + g + (lambda * u.theta[at] - eta) * per_example;
    u.momentum[at] = m;
    u.theta[at] -= rate * m;
  }
}

__global__ void __launch_bounds__(kThreads)
    add_squared_gradient_kernel(const float* gradient, std::size_t size, int example,
                                const std::int32_t* count, float* sum) {
  const int n = *count;
  if (example >= n) return;
  for (std::size_t i = blockIdx.x * kThreads + threadIdx.x; i < size; i += gridDim.x * kThreads) {
    sum[i] += gradient[i] * gradient[i] / float(n);
  }
}

__global__ void count_example_kernel(int example, const std::int32_t* count, std::int32_t* one) {
  *one = example < *count ? 1 : 0;
}

__global__ void seed_generator_kernel(const StreamAddress* at, std::uint32_t steps,
                                      std::int64_t* seed, std::int64_t* offset) {
  StreamAddress address = *at;
  address.step += steps;
  const Words words = philox_block(address, 0);
  *seed = std::int64_t((std::uint64_t(words.b) << 32) | words.a);
  *offset = 0;
}

}  // namespace

void update_from_gradient(const float* gradient, std::size_t size, int client,
                          const std::int32_t* count, const Update& u, Stream stream) {
  if (size == 0) return;
  update_from_gradient_kernel<<<blocks_for(size), kThreads, 0, stream>>>(gradient, size, client,
                                                                         count, u);
  check_launch("update_from_gradient");
}

void add_squared_gradient(const float* gradient, std::size_t size, int example,
                          const std::int32_t* count, float* sum, Stream stream) {
  if (size == 0 || gradient == nullptr) return;
  add_squared_gradient_kernel<<<blocks_for(size), kThreads, 0, stream>>>(gradient, size, example,
                                                                         count, sum);
  check_launch("add_squared_gradient");
}

void count_example(int example, const std::int32_t* count, std::int32_t* one, Stream stream) {
  count_example_kernel<<<1, 1, 0, stream>>>(example, count, one);
  check_launch("count_example");
}

void seed_generator(const StreamAddress* at, std::uint32_t steps, std::int64_t* seed,
                    std::int64_t* offset, Stream stream) {
  seed_generator_kernel<<<1, 1, 0, stream>>>(at, steps, seed, offset);
  check_launch("seed_generator");
}

}  // namespace fedep::gpu
