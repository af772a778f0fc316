// convolve() and input_gradient(): rows of A are gathered (positions of images), columns of B are
// weights.
#include <cstdint>

#include "fedep/cuda/early_launch.cuh"
#include "fedep/cuda/launch.h"
#include "fedep/cuda/product.cuh"

namespace fedep::gpu {
namespace {

// One product, forward (rows: output positions) or backward (rows: input positions).
struct GatherTask {
  Geometry g;
  CohortShape cohort;
  const float* a;
  const float* weights;
  std::size_t stride;
  const float* bias;
  const float* add;
  const float* where_positive;
  float scale;
  bool a_is_tf32;
  bool rectify_out;
  bool by_position;  // a block's rows are examples at one position
  float* out;
};

template <int kM, int kN, int kWarpsM, int kGroups, bool kBackward, bool kVector, bool kPrecise>
__global__ void __launch_bounds__(kThreads* kGroups) gather_product(const GatherTask task) {
  using Product =
      TileProduct<kM, kN, kWarpsM, true, kBackward, kPrecise, kGroups == 1 ? 3 : 2, kGroups>;
  constexpr int kBlock = kThreads * kGroups, kTile = Product::kTileDepth;
  constexpr int kStages = Product::kStages;
  extern __shared__ __align__(16) float shared[];
  __shared__ int row_image[kM], row_out[kM];
  __shared__ short row_y[kM], row_x[kM];
  __shared__ int tap_count;
  __shared__ std::uint8_t tap_y[kMostTaps], tap_x[kMostTaps], tap_index[kMostTaps];

  wait_for_previous();
  const Geometry& g = task.g;
  const int client = int(blockIdx.z);
  const int count = task.cohort.counts[client];
  if (count == 0) return;
  const int tid = int(threadIdx.x);
  const int contracted = kBackward ? g.out : g.in;  // channels summed over
  const int columns = kBackward ? g.in : g.out;     // channels of the result
  const int map_width = kBackward ? g.width : g.out_width;
  const int positions = kBackward ? g.height * g.width : g.out_height * g.out_width;
  const Divisor& by_positions = kBackward ? g.by_input_positions : g.by_output_positions;
  const Divisor& by_contracted = kBackward ? g.by_out : g.by_in;
  const int a_height = kBackward ? g.out_height : g.height,
            a_width = kBackward ? g.out_width : g.width;
  const int first_column = int(blockIdx.y) * kN;

  // Which image and position each row is.
  int first_row = int(blockIdx.x) * kM;
  int position_of_block = 0;
  if (task.by_position) {
    const int blocks = (task.cohort.rows + kM - 1) / kM;
    position_of_block = int(blockIdx.x) / blocks;
    first_row = (int(blockIdx.x) % blocks) * kM;
    if (first_row >= count) return;
  } else if (first_row >= count * positions) {
    return;
  }
  for (int r = tid; r < kM; r += kBlock) {
    int image = first_row + r, position = position_of_block;
    if (!task.by_position) {
      const int row = first_row + r;
      image = divide(by_positions, row);
      position = row - image * positions;
    }
    const bool valid = image < count;
    const int y = position / map_width, x = position - y * map_width;
    row_image[r] = valid ? image : -1;
    row_out[r] = image * positions + position;
    row_y[r] = short(kBackward ? y + g.pad_top : y * g.stride - g.pad_top);
    row_x[r] = short(kBackward ? x + g.pad_left : x * g.stride - g.pad_left);
  }
  __syncthreads();

  // Offset in A of what row r meets through tap (ky, kx); negative: padding.
  const auto offset_of = [&](int r, int ky, int kx) -> int {
    const int image = row_image[r];
    if (image < 0) return -1;
    int y, x;
    if (kBackward) {
      y = row_y[r] - ky;
      x = row_x[r] - kx;
      if (y < 0 || x < 0) return -1;
      const int odd = g.stride - 1;
      if (((y | x) & odd) != 0) return -1;
      y >>= odd;
      x >>= odd;
    } else {
      y = row_y[r] + ky;
      x = row_x[r] + kx;
      if (y < 0 || x < 0) return -1;
    }
    if (y >= a_height || x >= a_width) return -1;
    return ((image * a_height + y) * a_width + x) * contracted;
  };

  // Taps: all, or those that meet data at the block's one position.
  if (tid == 0) {
    int n = 0;
    for (int t = 0; t < g.taps; ++t) {
      const int tap = g.tap[t], ky = tap / g.kernel, kx = tap - ky * g.kernel;
      if (task.by_position && offset_of(0, ky, kx) < 0) continue;
      tap_y[n] = std::uint8_t(ky);
      tap_x[n] = std::uint8_t(kx);
      tap_index[n] = std::uint8_t(tap);
      ++n;
    }
    tap_count = n;
  }
  __syncthreads();

  const int depth = tap_count * contracted;
  const int tiles = (depth + kTile - 1) / kTile;
  const std::size_t a_map = std::size_t(a_height) * std::size_t(a_width) * std::size_t(contracted);
  const float* const a = task.a + std::size_t(client) * std::size_t(task.cohort.rows) * a_map;
  const float* const weights = task.weights + std::size_t(client) * task.stride;

  constexpr int kPart = kVector ? 4 : 1;  // floats a copy moves
  constexpr int kAcross = kTile / kPart;  // copies along the contracted index
  constexpr int kAcrossN = kN / kPart;
  constexpr int kRowsA = kM * kAcross / kBlock,
                kStepA = kBlock / kAcross;  // rows of a thread, and between them
  constexpr int kRowsN = kN * kAcross / kBlock;
  constexpr int kRowsK = kTile * kAcrossN / kBlock, kStepK = kBlock / kAcrossN;
  constexpr unsigned kStageBytes = Product::kStageFloats * 4;
  const int weight_rows = g.taps == 1 ? g.weight_rows : contracted;
  const unsigned shared_a =
      shared_address(shared) +
      unsigned((tid / kAcross) * Product::kStrideA + (tid % kAcross) * kPart) * 4;
  const unsigned shared_b =
      shared_address(shared) + Product::kFloatsA * 4 +
      (kBackward ? unsigned((tid / kAcross) * Product::kStrideB + (tid % kAcross) * kPart)
                 : unsigned((tid / kAcrossN) * Product::kStrideB + (tid % kAcrossN) * kPart)) *
          4;

  const int own_channel = (tid % kAcross) * kPart,
            own_column = first_column + (tid % kAcrossN) * kPart;

  // Where tiles lie within taps, where rows begin is worked out once per tap.
  const bool tile_in_tap = kVector && (contracted % kTile == 0 || g.taps == 1);
  int next_tap = 0, next_channel = 0;  // of the tile that is loaded next
  const float* row_begin[kRowsA];
  bool row_valid[kRowsA];
  const float* tap_begin = weights;

  const auto load_within_tap = [&](int stage) {
    if (next_channel == 0) {
#pragma unroll
      for (int i = 0; i < kRowsA; ++i) {
        const int at = offset_of(tid / kAcross + i * kStepA, tap_y[next_tap], tap_x[next_tap]);
        row_valid[i] = at >= 0;
        row_begin[i] = a + (at < 0 ? 0 : at + own_channel);
      }
      tap_begin = weights + std::size_t(tap_index[next_tap]) * std::size_t(g.in * g.out) +
                  (kBackward ? (first_column + tid / kAcross) * g.out + own_channel
                             : (tid / kAcrossN) * g.out + own_column);
    }
    const bool inside = next_channel + own_channel < contracted;
    const unsigned stage_bytes = unsigned(stage) * kStageBytes;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      copy<kPart>(shared_a + stage_bytes + unsigned(i * kStepA * Product::kStrideA) * 4,
                  row_begin[i] + next_channel, inside && row_valid[i]);
    }
    const float* const from = tap_begin + (kBackward ? next_channel : next_channel * g.out);
    if (kBackward) {
#pragma unroll
      for (int i = 0; i < kRowsN; ++i) {
        copy<kPart>(shared_b + stage_bytes + unsigned(i * kStepA * Product::kStrideB) * 4,
                    from + i * kStepA * g.out,
                    inside && first_column + tid / kAcross + i * kStepA < columns);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kRowsK; ++i) {
        copy<kPart>(
            shared_b + stage_bytes + unsigned(i * kStepK * Product::kStrideB) * 4,
            from + i * kStepK * g.out,
            own_column < columns && next_channel + tid / kAcrossN + i * kStepK < weight_rows);
      }
    }
    next_channel += kTile;
    if (next_channel >= contracted) {
      next_channel = 0;
      ++next_tap;
    }
  };

  const auto load_across_taps = [&](int tile, int stage) {
    const int k = tile * kTile + own_channel;
    const int t = k < depth ? divide(by_contracted, k) : 0;
    const int channel = k - t * contracted;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const int at = k < depth ? offset_of(tid / kAcross + i * kStepA, tap_y[t], tap_x[t]) : -1;
      copy<kPart>(
          shared_a + unsigned(stage) * kStageBytes + unsigned(i * kStepA * Product::kStrideA) * 4,
          a + (at < 0 ? 0 : at + channel), at >= 0);
    }
    if (kBackward) {  // b_tile[n][k] = W[tap, n, k]
#pragma unroll
      for (int i = 0; i < kRowsN; ++i) {
        const int n = first_column + tid / kAcross + i * kStepA;
        const bool valid = k < depth && n < columns;
        copy<kPart>(
            shared_b + unsigned(stage) * kStageBytes + unsigned(i * kStepA * Product::kStrideB) * 4,
            weights + (valid ? (int(tap_index[t]) * g.in + n) * g.out + channel : 0), valid);
      }
    } else {  // b_tile[k][n] = W[tap, k, n]
#pragma unroll
      for (int i = 0; i < kRowsK; ++i) {
        const int row = tile * kTile + tid / kAcrossN + i * kStepK;
        const bool valid = row < (g.taps == 1 ? weight_rows : depth) && own_column < columns;
        const int tap = valid ? divide(by_contracted, row) : 0;
        copy<kPart>(
            shared_b + unsigned(stage) * kStageBytes + unsigned(i * kStepK * Product::kStrideB) * 4,
            weights +
                (valid ? (int(tap_index[tap]) * g.in + row - tap * contracted) * g.out + own_column
                       : 0),
            valid);
      }
    }
  };

  const auto load = [&](int tile, int stage) {
    if (tile_in_tap) {
      load_within_tap(stage);
    } else {
      load_across_taps(tile, stage);
    }
  };

  Product product;
  product.clear();
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < tiles) load(stage, stage);
    end_of_copies();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    const int next = tile + kStages - 1;
    if (next < tiles) load(next, next % kStages);
    end_of_copies();
    const float* const a_tile = Product::tile_a(shared, tile % kStages);
    const float* const b_tile = Product::tile_b(shared, tile % kStages);
    if (task.a_is_tf32) {
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        product.template add<Operand::as_is, Operand::rounded>(a_tile, b_tile, k);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        product.template add<Operand::rounded, Operand::rounded>(a_tile, b_tile, k);
      }
    }
    product.fold();
  }
  product.finish();
  allow_next();
  wait_for_copies<0>();
  __syncthreads();
  product.merge(shared);
  product.lay_out(shared);
  __syncthreads();

  // Each thread has kItems fours (or single values), all in its own columns.
  constexpr int kItems = kM * kAcrossN / kBlock;
  if (own_column >= columns) return;
  const std::size_t out_map = std::size_t(positions) * std::size_t(columns);
  const std::size_t base =
      std::size_t(client) * std::size_t(task.cohort.rows) * out_map + std::size_t(own_column);
  float bias[kPart] = {};
  if (task.bias != nullptr) {
    for (int j = 0; j < kPart; ++j)
      bias[j] = task.bias[std::size_t(client) * task.stride + std::size_t(own_column + j)];
  }
#pragma unroll 4
  for (int item = 0; item < kItems; ++item) {
    const int r = tid / kAcrossN + item * kStepK;
    if (row_image[r] < 0) continue;
    const std::size_t at = base + std::size_t(row_out[r]) * std::size_t(columns);
    float value[kPart], add[kPart] = {}, sign[kPart];
    load_part<kPart>(shared + r * Product::kStrideC + own_column - first_column, value);
    if (task.add != nullptr) load_part<kPart>(task.add + at, add);
    if (task.where_positive != nullptr) load_part<kPart>(task.where_positive + at, sign);
#pragma unroll
    for (int j = 0; j < kPart; ++j) {
      value[j] = value[j] * task.scale + bias[j] + add[j];
      if (task.rectify_out) value[j] = fmaxf(value[j], 0.0f);
      if (task.where_positive != nullptr && !(sign[j] > 0.0f)) value[j] = 0.0f;
    }
    store_part<kPart>(value, task.out + at);
  }
}

template <int kM, int kN, int kWarpsM, int kGroups, bool kBackward, bool kVector, bool kPrecise>
void launch(const GatherTask& task, Stream stream) {
  using Product =
      TileProduct<kM, kN, kWarpsM, true, kBackward, kPrecise, kGroups == 1 ? 3 : 2, kGroups>;
  const auto kernel = gather_product<kM, kN, kWarpsM, kGroups, kBackward, kVector, kPrecise>;
  constexpr int kBytes = Product::kFloats * int(sizeof(float));
  allow_shared_memory(reinterpret_cast<const void*>(kernel), kBytes);
  const int positions = kBackward ? task.g.input_positions() : task.g.output_positions();
  const int columns = kBackward ? task.g.in : task.g.out;
  const int row_blocks = task.by_position ? positions * ((task.cohort.rows + kM - 1) / kM)
                                          : (task.cohort.rows * positions + kM - 1) / kM;
  const dim3 grid(unsigned(row_blocks), unsigned((columns + kN - 1) / kN),
                  unsigned(task.cohort.clients));
  launch_early(kernel, grid, kThreads * kGroups, kBytes, stream, task);
  check_launch("gather_product");
}

template <bool kBackward, bool kVector, bool kPrecise>
void choose_tile(GatherTask task, Stream stream) {
  const int positions = kBackward ? task.g.input_positions() : task.g.output_positions();
  const int columns = kBackward ? task.g.in : task.g.out;
  const int rows = task.cohort.rows * positions;
  // On small maps a block stays at one position, where only few taps meet data.
  task.by_position = positions > 1 && positions <= 9 && task.cohort.rows <= 64;
  // Where there are few blocks, two groups of warps share the depth of each.
  if (task.by_position || rows <= 32) {
    const long blocks = long((rows + 31) / 32) * ((columns + 63) / 64) * task.cohort.clients;
    if (blocks < 200 && columns >= 64) {
      return launch<32, 32, 2, 2, kBackward, kVector, kPrecise>(task, stream);
    }
    return launch<32, 64, 1, 2, kBackward, kVector, kPrecise>(task, stream);
  }
  const long large = long((rows + 127) / 128) * ((columns + 63) / 64) * task.cohort.clients;
  if (large >= 400) return launch<128, 64, 2, 1, kBackward, kVector, kPrecise>(task, stream);
  return launch<64, 64, 2, 2, kBackward, kVector, kPrecise>(task, stream);
}

template <bool kBackward>
void choose_copies(const GatherTask& task, bool precise, Stream stream) {
  const bool vector = task.g.in % 4 == 0 && task.g.out % 4 == 0 && task.stride % 4 == 0 &&
                      reinterpret_cast<std::uintptr_t>(task.weights) % 16 == 0;
  if (vector) {
    precise ? choose_tile<kBackward, true, true>(task, stream)
            : choose_tile<kBackward, true, false>(task, stream);
  } else {
    precise ? choose_tile<kBackward, false, true>(task, stream)
            : choose_tile<kBackward, false, false>(task, stream);
  }
}

}  // namespace

void convolve(const Geometry& g, const CohortShape& cohort, const Forward& f, bool precise,
              Stream stream) {
  choose_copies<false>({g, cohort, f.x, f.weights, f.stride, f.bias, f.add, nullptr, 1.0f,
                        f.x_is_tf32, f.rectify_y, false, f.y},
                       precise, stream);
}

void input_gradient(const Geometry& g, const CohortShape& cohort, const InputGradient& f,
                    bool precise, Stream stream) {
  choose_copies<true>({g, cohort, f.dy, f.weights, f.stride, nullptr, nullptr, f.where_positive,
                       f.scale, true, false, false, f.dx},
                      precise, stream);
}

}  // namespace fedep::gpu
