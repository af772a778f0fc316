// The SGD step of weights whose gradients are sums of few products: layers on small maps, which
// are most of a ResNet's weights and nearly all of a CNN's. What costs there is memory, so a thread
// asks for its weights first and sums their gradients on ordinary cores, in float, while they come.
#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/network/tap_positions.cuh"
#include "fedep/cuda/network/tensor_core.cuh"
#include "fedep/cuda/network/weight_step.cuh"

namespace fedep::gpu {
namespace {

constexpr int kM = 64, kN = 64;           // rows (inputs of a tap) and columns (outputs) of a block
constexpr int kThreads = 256;             // with 4 x 4 weights each
constexpr int kRows = 32, kStages = 2;    // terms of the sum in a tile, and tiles in flight
constexpr int kAcross = kN / 4;           // threads along a row of weights
constexpr int kLanes = kThreads / kRows;  // threads that copy one row of a tile
constexpr int kMostDirectPositions = 16;  // of an output map
constexpr int kMostTerms = 96;            // of a gradient; with more, tensor cores are faster

// Four rows of four neighbours, where they are inside.
struct Four {
  float at[4][4];

  __device__ void load(const float* from, std::size_t row_step, int rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < rows) load_part<4>(from + std::size_t(i) * row_step, at[i]);
    }
  }
};

template <bool kMomentum, bool kEta, bool kDiagonal>
__global__ void __launch_bounds__(kThreads) update_kernel(const WeightTask task) {
  __shared__ __align__(16) float x_tile[kStages][kRows][kM], dy_tile[kStages][kRows][kN];
  __shared__ TapPositions<kMostDirectPositions> positions;
  const Geometry& g = task.g;
  const Update& u = task.update;
  const int tid = int(threadIdx.x), client = int(blockIdx.z);
  const int count = task.cohort.counts[client];
  if (count == 0) return;
  const int first_m = int(blockIdx.x) * kM, first_n = int(blockIdx.y) * kN;
  const int tap = g.taps == 1 ? 0 : divide(g.by_in, first_m);
  const int first_channel = first_m - tap * g.in;
  const int channels = (g.taps == 1 ? g.weight_rows : g.in) - first_channel;  // of them inside

  const int m = tid / kAcross * 4, n = tid % kAcross * 4;
  const int own_rows = first_n + n < g.out ? min(4, channels - m) : 0;
  const std::size_t own =
      std::size_t(client) * u.stride +
      std::size_t(int(g.tap[tap]) * g.in + first_channel + m) * std::size_t(g.out) +
      std::size_t(first_n + n);
  const std::size_t out = std::size_t(g.out);
  Four theta, momentum, eta, lambda;
  theta.load(u.theta + own, out, own_rows);
  if (kMomentum) momentum.load(u.momentum + own, out, own_rows);
  if (kEta) eta.load(u.eta + own, out, own_rows);
  if (kDiagonal) lambda.load(u.lambda + own, out, own_rows);

  if (tid < 32) positions.list(g, tap, false);
  __syncthreads();
  const int depth = count * positions.count;
  const int input_map = g.height * g.width * g.in, output_map = g.out_height * g.out_width * g.out;
  const std::size_t first_example = std::size_t(client) * std::size_t(task.cohort.rows);
  const float* const x = task.x + first_example * std::size_t(input_map) + first_channel;
  const float* const dy = task.dy + first_example * std::size_t(output_map) + first_n;
  const float by_count = 1.0f / float(count);  // quotients are exact: rows are few
  const auto load = [&](int tile) {
    const int lane = tid % kLanes * 4, row = tid / kLanes, r = tile * kRows + row;
    const int stage = tile % kStages;
    if (r < depth) {
      const int index = __float2int_rz((float(r) + 0.5f) * by_count), image = r - index * count;
      const float* const x_from = x + image * input_map + positions.input[index];
      const float* const dy_from = dy + image * output_map + int(positions.output[index]) * g.out;
#pragma unroll
      for (int column = lane; column < kM; column += kLanes * 4) {
        const bool valid = column < channels;
        copy<4>(shared_address(&x_tile[stage][row][column]), x_from + (valid ? column : 0), valid);
      }
#pragma unroll
      for (int column = lane; column < kN; column += kLanes * 4) {
        const bool valid = first_n + column < g.out;
        copy<4>(shared_address(&dy_tile[stage][row][column]), dy_from + (valid ? column : 0),
                valid);
      }
    }
    end_of_copies();
  };

  float gradient[4][4] = {};
  const int tiles = (depth + kRows - 1) / kRows;
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    load(tile + 1);
    wait_for_copies<1>();
    __syncthreads();
    const int rows = min(kRows, depth - tile * kRows), stage = tile % kStages;
#pragma unroll 4
    for (int r = 0; r < rows; ++r) {
      float a[4], b[4];
      load_part<4>(&x_tile[stage][r][m], a);
      load_part<4>(&dy_tile[stage][r][n], b);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) gradient[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

  const float per_example = u.per_example[client],
              shared_lambda = kDiagonal ? 0.0f : u.lambda[client], rate = rate_of(u, client);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i >= own_rows) break;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float without = 0.0f;
      step(u, rate, kDiagonal ? lambda.at[i][j] : shared_lambda, per_example,
           kEta ? eta.at[i][j] : 0.0f, gradient[i][j], kMomentum ? momentum.at[i][j] : without,
           theta.at[i][j]);
    }
    store_part<4>(theta.at[i], u.theta + own + std::size_t(i) * out);
    if (kMomentum) store_part<4>(momentum.at[i], u.momentum + own + std::size_t(i) * out);
  }
}

template <bool kMomentum, bool kEta>
auto kernel_for(bool diagonal) {
  return diagonal ? update_kernel<kMomentum, kEta, true> : update_kernel<kMomentum, kEta, false>;
}

}  // namespace

bool has_few_terms(const Geometry& g, const CohortShape& cohort) {
  const int positions = g.out_height * g.out_width;
  return positions <= kMostDirectPositions && cohort.rows * positions <= kMostTerms &&
         (g.in % kM == 0 || g.taps == 1);
}

void update_directly(const WeightTask& task, Stream stream) {
  const Geometry& g = task.g;
  const Update& u = task.update;
  const bool eta = u.eta != nullptr;
  const auto kernel =
      u.mu != 0
          ? (eta ? kernel_for<true, true>(u.diagonal) : kernel_for<true, false>(u.diagonal))
          : (eta ? kernel_for<false, true>(u.diagonal) : kernel_for<false, false>(u.diagonal));
  const dim3 grid(unsigned((g.taps * g.in + kM - 1) / kM), unsigned((g.out + kN - 1) / kN),
                  unsigned(task.cohort.clients));
  kernel<<<grid, kThreads, 0, stream>>>(task);
  check_launch("update_directly");
}

}  // namespace fedep::gpu
