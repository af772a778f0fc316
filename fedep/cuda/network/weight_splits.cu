#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/network/tensor_core.cuh"
#include "fedep/cuda/network/weight_step.cuh"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 128;

// kPart neighbours a thread.
template <bool kSquares, int kPart>
__global__ void finish_kernel(const WeightTask task) {
  const Geometry& g = task.g;
  const int client = int(blockIdx.y);
  const int count = task.cohort.counts[client * task.sum.minibatches];
  if (count == 0) return;
  const int size = g.weight_rows * g.out, tap_size = g.in * g.out;
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x) * kPart;
  if (i >= size) return;
  float value[kPart] = {};
  for (int split = 0; split < task.splits; ++split) {
    float part[kPart];
    load_part<kPart>(task.partial +
                         (std::size_t(split) * std::size_t(task.rows()) + std::size_t(client)) *
                             std::size_t(size) +
                         std::size_t(i),
                     part);
    for (int j = 0; j < kPart; ++j) value[j] += part[j];
  }
  const int t = i / tap_size;
  const std::size_t stride = kSquares ? task.sum.stride : task.update.stride;
  const std::size_t at = std::size_t(client) * stride +
                         std::size_t(g.tap[t]) * std::size_t(tap_size) +
                         std::size_t(i - t * tap_size);
  const Update& u = task.update;
  if (kSquares) {
    float sum[kPart];
    load_part<kPart>(task.sum.sum + at, sum);
    for (int j = 0; j < kPart; ++j) sum[j] += value[j] / float(count);
    store_part<kPart>(sum, task.sum.sum + at);
    return;
  }
  float theta[kPart], momentum[kPart] = {}, eta[kPart] = {}, lambda[kPart];
  load_part<kPart>(u.theta + at, theta);
  if (u.mu != 0) load_part<kPart>(u.momentum + at, momentum);
  if (u.eta != nullptr) load_part<kPart>(u.eta + at, eta);
  if (u.diagonal) load_part<kPart>(u.lambda + at, lambda);
  const float rate = rate_of(u, client);
  for (int j = 0; j < kPart; ++j) {
    step(u, rate, u.diagonal ? lambda[j] : u.lambda[client], u.per_example[client], eta[j],
         value[j], momentum[j], theta[j]);
  }
  store_part<kPart>(theta, u.theta + at);
  if (u.mu != 0) store_part<kPart>(momentum, u.momentum + at);
}

}  // namespace

void finish_splits(const WeightTask& task, bool squares, bool vector, Stream stream) {
  const int parts = task.g.weight_rows * task.g.out / (vector ? 4 : 1);
  const dim3 blocks(unsigned((parts + kThreads - 1) / kThreads), unsigned(task.rows()));
  const auto kernel = squares ? (vector ? finish_kernel<true, 4> : finish_kernel<true, 1>)
                              : (vector ? finish_kernel<false, 4> : finish_kernel<false, 1>);
  kernel<<<blocks, kThreads, 0, stream>>>(task);
  check_launch("finish_splits");
}

}  // namespace fedep::gpu
