// Losses and labels, a block per client whose warps take turns at the examples; dropout; biases.
#include "fedep/cuda/network/layer_kernels.h"

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/random.cuh"
#include "fedep/cuda/device/warp.cuh"
#include "fedep/cuda/network/dropout.cuh"
#include "fedep/cuda/network/weight_step.cuh"

namespace fedep::gpu {
namespace {

constexpr int kMostWarps = 32;  // of any block

// A warp for every example of a client, as far as a block goes.
unsigned threads_for_rows(const CohortShape& cohort) {
  return unsigned(cohort.rows < kMostWarps ? cohort.rows : kMostWarps) * 32;
}

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
        const double before = __shfl_up_sync(kAllLanes, reached, step);
        if (lane >= step) reached += before;
      }
      const unsigned vote = __ballot_sync(kAllLanes, i < outputs && uniform < below + reached);
      if (vote != 0) {
        drawn = min(base + __ffs(int(vote)) - 1, outputs - 1);
        break;
      }
      below += __shfl_sync(kAllLanes, reached, 31);
    }
    if (lane == 0) labels[example] = drawn;
  }
}

__global__ void drop_out_kernel(int per_example, CohortShape cohort, DropoutBytes dropout,
                                float* values) {
  const int chunk = int(blockIdx.x * blockDim.x + threadIdx.x);
  const int client = int(blockIdx.z), row = int(blockIdx.y);
  if (chunk * 16 >= per_example || row >= cohort.counts[client]) return;
  const Words words = dropout.block(client, row, unsigned(chunk));
  float* const out = values + (std::size_t(client) * std::size_t(cohort.rows) + std::size_t(row)) *
                                  std::size_t(per_example);
  for (int j = 0; j < 16 && chunk * 16 + j < per_example; ++j) {
    out[chunk * 16 + j] *= dropout.factor(word_of(words, unsigned(j) / 4), j % 4);
  }
}

// 32 outputs a block, 32 threads share the rows.
constexpr int kBiasRows = 32;

template <bool kSquares>
__global__ void bias_kernel(int positions, int out, CohortShape cohort, const float* dy, Update u,
                            SquaredSum to) {
  __shared__ float parts[kBiasRows][32];
  const int client = int(blockIdx.y), o = int(blockIdx.x) * 32 + int(threadIdx.x);
  const MinibatchRows examples(cohort, to.minibatches, client);
  const int count = examples.count;
  if (count == 0) return;
  const float* const from = dy + std::size_t(client * to.minibatches) * std::size_t(cohort.rows) *
                                     std::size_t(positions * out);
  float total = 0.0f;
  if (o < out) {
    if (kSquares) {
      for (int image = int(threadIdx.y); image < count; image += kBiasRows) {
        float gradient = 0.0f;
        const int row = examples.at(image) * positions;
#pragma unroll 8
        for (int p = 0; p < positions; ++p) {
          gradient += from[std::size_t(row + p) * std::size_t(out) + std::size_t(o)];
        }
        total += gradient * gradient;
      }
    } else {
#pragma unroll 8
      for (int row = int(threadIdx.y); row < count * positions; row += kBiasRows) {
        total += from[std::size_t(row) * std::size_t(out) + std::size_t(o)];
      }
    }
  }
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || o >= out) return;
  for (int i = 1; i < kBiasRows; ++i) total += parts[i][threadIdx.x];
  if (kSquares) {
    to.sum[std::size_t(client) * to.stride + std::size_t(o)] += total / float(examples.size);
    return;
  }
  update_one(u, client, std::size_t(o), total);
}

}  // namespace

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

void drop_out(int per_example, const CohortShape& cohort, const Dropout& dropout, float* values,
              Stream stream) {
  const unsigned chunks = unsigned((per_example + 15) / 16);
  const dim3 grid((chunks + 127) / 128, unsigned(cohort.rows), unsigned(cohort.clients));
  drop_out_kernel<<<grid, 128, 0, stream>>>(per_example, cohort, DropoutBytes(dropout), values);
  check_launch("drop_out");
}

void update_bias(int positions, int out, const CohortShape& cohort, const float* dy,
                 const Update& u, Stream stream) {
  const dim3 grid(unsigned((out + 31) / 32), unsigned(cohort.clients));
  bias_kernel<false><<<grid, dim3(32, kBiasRows), 0, stream>>>(positions, out, cohort, dy, u, {});
  check_launch("update_bias");
}

void add_bias_squares(int positions, int out, const CohortShape& cohort, const float* dy,
                      const SquaredSum& to, Stream stream) {
  const dim3 grid(unsigned((out + 31) / 32), unsigned(cohort.clients / to.minibatches));
  bias_kernel<true><<<grid, dim3(32, kBiasRows), 0, stream>>>(positions, out, cohort, dy, {}, to);
  check_launch("add_bias_squares");
}

}  // namespace fedep::gpu
