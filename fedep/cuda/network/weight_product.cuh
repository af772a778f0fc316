// The kernel that sums gradients of weights: [taps in, out] = Σ over examples and positions of inputs
// times derivatives, and does the SGD step (or adds squares) where the gradient is made.
#pragma once

#include "fedep/cuda/network/product.cuh"
#include "fedep/cuda/network/tap_positions.cuh"
#include "fedep/cuda/network/weight_results.cuh"
#include "fedep/cuda/network/weight_rows.cuh"

namespace fedep::gpu {

// Whether no tap is ever outside of its map: the convolution is not padded.
__host__ __device__ inline bool all_taps_meet_all(const Geometry& g) {
  return g.pad_top == 0 && g.pad_left == 0 && g.taps == g.kernel * g.kernel &&
         (g.out_height - 1) * g.stride + g.kernel <= g.height &&
         (g.out_width - 1) * g.stride + g.kernel <= g.width;
}

// Blocks that a multiprocessor should have registers for; 0: as many as the compiler likes.
constexpr int resident_blocks(Sum sum, int tile_m, bool precise) {
  return sum == Sum::gradients || precise ? 0 : tile_m > 64 ? 2 : 3;
}

// `kFetch`: what the step needs besides the gradient (theta, momentum, eta, lambda) is fetched into
// shared memory while the gradient is summed.
template <int kM, int kN, int kWarpsM, int kWarps, bool kVector, bool kPrecise, Sum kSum,
          bool kFetch>
__global__ void __launch_bounds__(32 * kWarps, resident_blocks(kSum, kM, kPrecise))
    weight_product(const WeightTask task) {
  using Product = TileProduct<kM, kN, kWarpsM, false, false, kPrecise, kFetch ? 2 : 3, 1, kWarps>;
  constexpr int kThreads = Product::kThreads;
  constexpr int kStages = Product::kStages;
  constexpr int kPart = kVector ? 4 : 1;
  extern __shared__ __align__(16) float shared[];
  __shared__ TapPositions<kMostPositions> tap_positions;

  const Geometry& g = task.g;
  const int client = int(blockIdx.z) / task.splits, split = int(blockIdx.z) % task.splits;
  const int tid = int(threadIdx.x);
  const int first_m = int(blockIdx.x) * kM, first_n = int(blockIdx.y) * kN;
  const int rows_m = g.weight_rows;
  const int positions = g.out_height * g.out_width;
  const bool one_tap = g.in % kM == 0 || g.taps == 1;
  // What a row of A's tile is made of lies at the same distances for every row of the sum.
  const bool in_rows = one_tap || all_taps_meet_all(g);
  constexpr int kAcrossM = kM / kPart, kAcrossN = kN / kPart;
  const int column_m = (tid % kAcrossM) * kPart, column_n = (tid % kAcrossN) * kPart;
  const int block_tap = divide(g.by_in, first_m);  // where a block has one

  const OwnWeights<kM, kN, kThreads, kPart> own{g, first_m, first_n, one_tap, block_tap};
  const StepTiles<kM * kN> step_tiles(task.update, shared + Product::kFloats);
  if constexpr (kFetch) step_tiles.fetch(own, task.update, client);
  const int minibatches = kSum == Sum::gradients ? 1 : task.sum.minibatches;
  const MinibatchRows examples(task.cohort, minibatches, client);
  if (examples.count == 0) {
    wait_for_copies<0>();
    return;
  }

  // Output positions that this block's tap meets data at; all of them where a block has several
  // taps.
  if (tid < 32) tap_positions.list(g, one_tap ? block_tap : 0, !in_rows);
  __syncthreads();
  const SumRows<kSum> sum_rows(examples, tap_positions.count, kDepth, task.splits, split);
  const int first = sum_rows.first;
  const int tiles = (sum_rows.last - first + kDepth - 1) / kDepth;

  const std::size_t first_example =
      std::size_t(client) * std::size_t(minibatches) * std::size_t(task.cohort.rows);
  const float* const x = task.x + first_example * std::size_t(g.height * g.width * g.in);
  const float* const dy = task.dy + first_example * std::size_t(positions * g.out);

  const int input_map = g.height * g.width * g.in, output_map = positions * g.out;
  // A thread copies the same columns of every row.
  const int m = first_m + column_m;
  const int t = m < rows_m ? divide(g.by_in, m) : 0;
  const int channel = m - t * g.in, ky = g.tap[t] / g.kernel, kx = g.tap[t] % g.kernel;

  constexpr int kRowsM = kDepth * kAcrossM / kThreads, kStepM = kThreads / kAcrossM;
  constexpr int kRowsN = kDepth * kAcrossN / kThreads, kStepN = kThreads / kAcrossN;
  constexpr unsigned kStageBytes = Product::kStageFloats * 4;
  const unsigned shared_a =
      shared_address(shared) + unsigned((tid / kAcrossM) * Product::kStrideA + column_m) * 4;
  const unsigned shared_b =
      shared_address(shared) +
      unsigned(Product::kFloatsA + (tid / kAcrossN) * Product::kStrideB + column_n) * 4;
  const float* const x_begin = x + channel;
  const float* const dy_begin = dy + first_n + column_n;
  const bool m_valid = m < rows_m, n_valid = first_n + column_n < g.out;

  const auto copy_input = [&](int stage, int i, int image, int index) {
    bool valid = image >= 0 && m_valid;
    int at = 0;
    if (one_tap) {
      at = tap_positions.input[index];
    } else {
      const int position = tap_positions.output[index];
      const int oy = position / g.out_width, ox = position - oy * g.out_width;
      const int iy = oy * g.stride - g.pad_top + ky, ix = ox * g.stride - g.pad_left + kx;
      valid = valid && iy >= 0 && iy < g.height && ix >= 0 && ix < g.width;
      at = (iy * g.width + ix) * g.in;
    }
    copy<kPart>(
        shared_a + unsigned(stage) * kStageBytes + unsigned(i * kStepM * Product::kStrideA) * 4,
        valid ? x_begin + image * input_map + at : x, valid);
  };
  const auto copy_derivative = [&](int stage, int i, int image, int index) {
    const bool valid = image >= 0 && n_valid;
    copy<kPart>(
        shared_b + unsigned(stage) * kStageBytes + unsigned(i * kStepN * Product::kStrideB) * 4,
        valid ? dy_begin + image * output_map + int(tap_positions.output[index]) * g.out : dy,
        valid);
  };
  // kLanes threads share a row of both tiles, and its address is worked out once. Columns of other
  // taps than the first lie elsewhere, but equally far for every row.
  constexpr int kLanes = kThreads / kDepth;
  const int lane = (tid % kLanes) * kPart, own_row = tid / kLanes;
  const unsigned to_a = shared_address(shared) + unsigned(own_row * Product::kStrideA + lane) * 4;
  const unsigned to_b =
      shared_address(shared) + unsigned(Product::kFloatsA + own_row * Product::kStrideB + lane) * 4;
  constexpr int kColumns = kM / (kLanes * kPart);
  int x_column[kColumns];
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int row = first_m + lane + j * kLanes * kPart;
    const int row_tap = one_tap ? block_tap : row < rows_m ? divide(g.by_in, row) : 0;
    const int tap_y = g.tap[row_tap] / g.kernel, tap_x = g.tap[row_tap] % g.kernel;
    const int shift = one_tap ? 0 : (tap_y * g.width + tap_x) * g.in;
    x_column[j] = row < rows_m ? shift + row - (g.taps == 1 ? 0 : row_tap * g.in) : -1;
  }
  const float* const dy_lane = dy + first_n + lane;
  const auto load_row = [&](int tile, int stage) {
    int image, index;
    sum_rows.find(first + tile * kDepth + own_row, image, index);
    const bool valid = image >= 0;
    const float* const x_from = x + (valid ? image * input_map + tap_positions.input[index] : 0);
    const float* const dy_from =
        dy_lane + (valid ? image * output_map + int(tap_positions.output[index]) * g.out : 0);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      copy<kPart>(to_a + unsigned(stage) * kStageBytes + unsigned(j * kLanes * kPart) * 4,
                  x_from + max(x_column[j], 0), valid && x_column[j] >= 0);
    }
#pragma unroll
    for (int j = 0; j < kN / (kLanes * kPart); ++j) {
      const int column = j * kLanes * kPart;
      copy<kPart>(to_b + unsigned(stage) * kStageBytes + unsigned(column) * 4, dy_from + column,
                  valid && first_n + lane + column < g.out);
    }
  };
  // A tile whose rows not every thread has a column of comes only where it is loaded by rows.
  constexpr bool kByRowsOnly = kThreads % kAcrossM != 0;
  static_assert(kVector || !kByRowsOnly, "rows are loaded in fours");
  const auto load = [&](int tile, int stage) {
    if (kByRowsOnly || (kVector && in_rows)) return load_row(tile, stage);
    const int begin = first + tile * kDepth;
    int image, index;
#pragma unroll
    for (int i = 0; i < kRowsM; ++i) {
      sum_rows.find(begin + tid / kAcrossM + i * kStepM, image, index);
      copy_input(stage, i, image, index);
      if constexpr (kM == kN) copy_derivative(stage, i, image, index);
    }
    if constexpr (kM != kN) {
#pragma unroll
      for (int i = 0; i < kRowsN; ++i) {
        sum_rows.find(begin + tid / kAcrossN + i * kStepN, image, index);
        copy_derivative(stage, i, image, index);
      }
    }
  };

  Product product;
  product.clear();
  float total[kSum == Sum::squares ? Product::kTilesM : 1]
             [kSum == Sum::squares ? Product::kTilesN : 1][4] = {};
  load(0, 0);
  end_of_copies();
#pragma unroll
  for (int stage = 1; stage < kStages - 1; ++stage) {
    if (stage < tiles) load(stage, stage);
    end_of_copies();
  }
  int group_in_example = 0;
  // An example's gradient is whole: its square goes to the total.
  const auto take_squares = [&] {
#pragma unroll
    for (int i = 0; i < Product::kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < Product::kTilesN; ++j)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const float value = product.c[i][j][part];
          if constexpr (kSum == Sum::squares) total[i][j][part] += value * value;
          product.c[i][j][part] = 0.0f;
        }
  };
  const bool of_products =
      kSum == Sum::squared_products || (kSum == Sum::squares && sum_rows.width == 1);
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    const int next = tile + kStages - 1;
    if (next < tiles) load(next, next % kStages);
    end_of_copies();
    const float* const a_tile = Product::tile_a(shared, tile % kStages);
    const float* const b_tile = Product::tile_b(shared, tile % kStages);
    if (kSum != Sum::gradients && of_products) {
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        product.template add<Operand::squared, Operand::squared>(a_tile, b_tile, k);
      }
    } else if (kSum == Sum::squares && sum_rows.width == 4) {
#pragma unroll
      for (int k = 0; k < kDepth; k += 4) {
        if (task.x_is_tf32) {
          product.template add_four<Operand::as_is, Operand::as_is>(a_tile, b_tile, k);
        } else {
          product.template add_four<Operand::rounded, Operand::as_is>(a_tile, b_tile, k);
        }
        take_squares();
      }
    } else if (kSum != Sum::squared_products) {
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        if (task.x_is_tf32) {
          product.template add<Operand::as_is, Operand::as_is>(a_tile, b_tile, k);
        } else {
          product.template add<Operand::rounded, Operand::as_is>(a_tile, b_tile, k);
        }
        if (kSum == Sum::squares && ++group_in_example == sum_rows.groups) {
          group_in_example = 0;
          take_squares();
        }
      }
    }
    if (kSum == Sum::gradients || of_products) product.fold();
  }
  if (kSum == Sum::gradients || of_products) {
    product.finish();
  } else {
#pragma unroll
    for (int i = 0; i < Product::kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < Product::kTilesN; ++j)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          if constexpr (kSum == Sum::squares) product.c[i][j][part] = total[i][j][part];
  }
  wait_for_copies<0>();
  __syncthreads();
  product.lay_out(shared);
  __syncthreads();

  if (!own.has_columns()) return;
  constexpr int kStride = Product::kStrideC;
  if (task.splits > 1) {
    keep_part<kStride>(own, task, client, split, shared);
  } else if constexpr (kSum != Sum::gradients) {
    add_to_squares<kStride>(own, task.sum, client, 1.0f / float(examples.size), shared);
  } else if constexpr (kFetch) {
    step_tiles.template step_all<kStride>(own, task.update, client, shared);
  } else {
    step_each<kStride>(own, task.update, client, shared);
  }
}

}  // namespace fedep::gpu
