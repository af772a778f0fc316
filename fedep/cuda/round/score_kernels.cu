#include "fedep/cuda/round/score_kernels.h"

#include <cmath>

#include "fedep/cuda/device/launch.h"

namespace fedep::gpu {
namespace {

constexpr int kWarps = 4;  // of a block; a warp has an example

__device__ double warp_sum(double value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  return value;
}

__global__ void add_softmax_kernel(std::size_t n, int classes, const float* logits, bool first,
                                   double* sum) {
  const std::size_t row = std::size_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= n) return;
  const int lane = threadIdx.x % 32;
  const float* const z = logits + row * classes;
  float top = -INFINITY;
  for (int i = lane; i < classes; i += 32) top = fmaxf(top, z[i]);  // a NaN shows in the sum
  for (int k = 16; k > 0; k /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, k));
  double total = 0;
  for (int i = lane; i < classes; i += 32) total += exp(double(z[i]) - double(top));
  total = warp_sum(total);
  for (int i = lane; i < classes; i += 32) {
    const double p = exp(double(z[i]) - double(top)) / total;
    double* const to = sum + row * classes + i;
    *to = first ? p : *to + p;
  }
}

__global__ void score_kernel(std::size_t n, int classes, const double* sum, double draws,
                             const std::int32_t* labels, ExampleScore* scores) {
  const std::size_t row = std::size_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= n) return;
  const int lane = threadIdx.x % 32;
  const int label = labels[row];
  double squares = 0, best = -1;
  int best_class = classes;
  bool undefined = false;
  for (int i = lane; i < classes; i += 32) {
    const double p = sum[row * classes + i] / draws;
    const double error = p - (i == label ? 1.0 : 0.0);
    squares += error * error;
    undefined = undefined || isnan(p);
    if (p > best) {
      best = p;
      best_class = i;
    }
  }
  squares = warp_sum(squares);
  undefined = __any_sync(0xffffffffu, undefined);
  for (int k = 16; k > 0; k /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, best, k);
    const int other_class = __shfl_xor_sync(0xffffffffu, best_class, k);
    if (other > best || (other == best && other_class < best_class)) {
      best = other;
      best_class = other_class;
    }
  }
  if (lane != 0) return;
  const double p_label = sum[row * classes + label] / draws;
  scores[row] = {undefined ? NAN : best,
                 undefined ? squares : -log(fmin(fmax(p_label, 0x1p-52), 1.0)) + 0.0, squares,
                 !undefined && best_class == label, 0};
}

unsigned blocks(std::size_t n) { return unsigned((n + kWarps - 1) / kWarps); }

}  // namespace

void add_softmax(std::size_t n, int classes, const float* logits, bool first, double* sum,
                 Stream stream) {
  if (n == 0) return;
  add_softmax_kernel<<<blocks(n), 32 * kWarps, 0, stream>>>(n, classes, logits, first, sum);
  check_launch("add_softmax");
}

void score_examples(std::size_t n, int classes, const double* sum, double draws,
                    const std::int32_t* labels, ExampleScore* scores, Stream stream) {
  if (n == 0) return;
  score_kernel<<<blocks(n), 32 * kWarps, 0, stream>>>(n, classes, sum, draws, labels, scores);
  check_launch("score_examples");
}

}  // namespace fedep::gpu
