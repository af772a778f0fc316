// convolve() and input_gradient(): rows of A are gathered (positions of images), columns of B are
// weights.
#include "fedep/cuda/device/early_launch.cuh"
#include "fedep/cuda/network/gather_rows.cuh"

namespace fedep::gpu {
namespace {

template <class Block, bool kBackward, bool kVector, bool kPrecise>
__global__ void __launch_bounds__(Block::kBlock, kPrecise ? 0 : Block::kResident)
    gather_product(const GatherTask task) {
  using Product = typename Block::template Product<kBackward, kPrecise>;
  constexpr int kM = Block::kM, kN = Block::kN, kBlock = Block::kBlock;
  constexpr int kTile = Product::kTileDepth, kStages = Product::kStages;
  extern __shared__ __align__(16) float shared[];
  __shared__ GatherRows<kM> rows;

  const Geometry& g = task.g;
  const Sides<kBackward> sides(g);
  const int tid = int(threadIdx.x), contracted = sides.contracted, columns = sides.columns;
  const int client = int(blockIdx.z), first_column = int(blockIdx.y) * kN;
  rows.begin_taps(g, sides);
  wait_for_previous();
  const int count = task.cohort.counts[client];
  if (count == 0) return;
  int first_row = int(blockIdx.x) * kM, position = -1;
  if (task.by_position) {
    const int blocks = (task.cohort.rows + kM - 1) / kM;
    position = int(blockIdx.x) / blocks;
    first_row = (int(blockIdx.x) % blocks) * kM;
    if (first_row >= count) return;
  } else if (first_row >= count * sides.positions) {
    return;
  }
  __syncthreads();
  const unsigned live_taps =
      rows.template fill<kBackward, kBlock>(g, sides, first_row, position, count);

  const bool few_taps = g.taps <= kMaskTaps;
  const bool tile_in_tap = kVector && (contracted % kTile == 0 || g.taps == 1) && few_taps;
  const int depth = (few_taps ? __popc(live_taps) : g.taps) * contracted;
  const int tiles = (depth + kTile - 1) / kTile;
  const float* const a = task.a + std::size_t(client) * std::size_t(task.cohort.rows) *
                                      std::size_t(sides.a_height * sides.a_width) *
                                      std::size_t(contracted);
  const float* const weights =
      task.weights + std::size_t(client / task.cohort.sharing) * task.stride;

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

  // A thread copies the same rows of every tile.
  int own_begin[kRowsA];
  unsigned own_taps[kRowsA];
  if (tile_in_tap) {
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      own_begin[i] = rows.begin[tid / kAcross + i * kStepA] * contracted + own_channel;
      own_taps[i] = rows.taps[tid / kAcross + i * kStepA];
    }
  }
  unsigned taps_left = live_taps;
  int next_tap = 0, next_channel = 0;  // of the tile that is loaded next
  const float* tap_begin = weights;
  const int weights_step = (kBackward ? kStepA : kStepK) * g.out;

  const auto load_within_tap = [&](int stage) {
    if (next_channel == 0) {
      next_tap = __ffs(int(taps_left)) - 1;
      taps_left &= taps_left - 1;
      tap_begin = weights + int(g.tap[next_tap]) * g.in * g.out +
                  (kBackward ? (first_column + tid / kAcross) * g.out + own_channel
                             : (tid / kAcrossN) * g.out + own_column);
    }
    const bool inside = next_channel + own_channel < contracted;
    const unsigned stage_bytes = unsigned(stage) * kStageBytes;
    const float* const from_a = a + (rows.tap_shift[next_tap] * contracted + next_channel);
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const bool valid = inside && ((own_taps[i] >> next_tap) & 1u) != 0;
      copy<kPart>(shared_a + stage_bytes + unsigned(i * kStepA * Product::kStrideA) * 4,
                  valid ? from_a + own_begin[i] : a, valid);
    }
    const float* from = tap_begin + (kBackward ? next_channel : next_channel * g.out);
    if (kBackward) {
#pragma unroll
      for (int i = 0; i < kRowsN; ++i) {
        copy<kPart>(shared_b + stage_bytes + unsigned(i * kStepA * Product::kStrideB) * 4, from,
                    inside && first_column + tid / kAcross + i * kStepA < columns);
        from += weights_step;
      }
    } else {
      const int rows_left = own_column < columns ? weight_rows - next_channel - tid / kAcrossN : 0;
#pragma unroll
      for (int i = 0; i < kRowsK; ++i) {
        copy<kPart>(shared_b + stage_bytes + unsigned(i * kStepK * Product::kStrideB) * 4, from,
                    i * kStepK < rows_left);
        from += weights_step;
      }
    }
    next_channel += kTile;
    if (next_channel >= contracted) next_channel = 0;
  };

  const auto tap_at = [&](int i) { return few_taps ? int(__fns(live_taps, 0, i + 1)) : i; };
  const auto load_across_taps = [&](int tile, int stage) {
    const int k = tile * kTile + own_channel;
    const int listed = k < depth ? divide(sides.by_contracted, k) : 0;
    const int channel = k - listed * contracted, t = tap_at(listed);
    const int ky = g.tap[t] / g.kernel, kx = g.tap[t] - ky * g.kernel;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const int at = k < depth ? rows.place(sides, tid / kAcross + i * kStepA, ky, kx) : -1;
      copy<kPart>(
          shared_a + unsigned(stage) * kStageBytes + unsigned(i * kStepA * Product::kStrideA) * 4,
          a + (at < 0 ? 0 : at * contracted + channel), at >= 0);
    }
    if (kBackward) {  // b_tile[n][k] = W[tap, n, k]
#pragma unroll
      for (int i = 0; i < kRowsN; ++i) {
        const int n = first_column + tid / kAcross + i * kStepA;
        const bool valid = k < depth && n < columns;
        copy<kPart>(
            shared_b + unsigned(stage) * kStageBytes + unsigned(i * kStepA * Product::kStrideB) * 4,
            weights + (valid ? (int(g.tap[t]) * g.in + n) * g.out + channel : 0), valid);
      }
    } else {  // b_tile[k][n] = W[tap, k, n]
#pragma unroll
      for (int i = 0; i < kRowsK; ++i) {
        const int row = tile * kTile + tid / kAcrossN + i * kStepK;
        const bool valid = row < (g.taps == 1 ? weight_rows : depth) && own_column < columns;
        const int row_listed = valid ? divide(sides.by_contracted, row) : 0;
        const int channel_row =
            int(g.tap[tap_at(row_listed)]) * g.in + row - row_listed * contracted;
        copy<kPart>(
            shared_b + unsigned(stage) * kStageBytes + unsigned(i * kStepK * Product::kStrideB) * 4,
            weights + (valid ? channel_row * g.out + own_column : 0), valid);
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
  store_rows<kM, kN, Product::kStrideC, kBlock, kPart>(task, sides, rows, client, first_column,
                                                       shared);
}

template <class Block, bool kBackward, bool kVector, bool kPrecise>
void launch(const GatherTask& task, Stream stream) {
  constexpr int kM = Block::kM, kN = Block::kN;
  const auto kernel = gather_product<Block, kBackward, kVector, kPrecise>;
  constexpr int kBytes = Block::template Product<kBackward, kPrecise>::kFloats * int(sizeof(float));
  allow_shared_memory(reinterpret_cast<const void*>(kernel), kBytes);
  const Sides<kBackward> sides(task.g);
  const int row_blocks = task.by_position ? sides.positions * ((task.cohort.rows + kM - 1) / kM)
                                          : (task.cohort.rows * sides.positions + kM - 1) / kM;
  const dim3 grid(unsigned(row_blocks), unsigned((sides.columns + kN - 1) / kN),
                  unsigned(task.cohort.clients));
  launch_early(kernel, grid, Block::kBlock, kBytes, stream, task);
  check_launch("gather_product");
}

template <bool kBackward, bool kVector, bool kPrecise>
void choose_tile(GatherTask task, Stream stream) {
  const Sides<kBackward> sides(task.g);
  const int rows = task.cohort.rows * sides.positions;
  const long across = (sides.columns + 63) / 64 * task.cohort.most_clients();
  // On small maps a block stays at one position, where only few taps meet data.
  task.by_position = sides.positions > 1 && sides.positions <= 9 && task.cohort.rows <= 64;
  // Two groups of warps share the depth of a small tile.
  if (task.by_position || (rows <= 32 && across >= 200)) {
    return launch<Blocking<32, 64, 1, 4, 2, 2, 3>, kBackward, kVector, kPrecise>(task, stream);
  }
  if (rows <= 32) {  // few blocks: more of each is on its way
    return launch<Blocking<32, 64, 1, 4, 2, 4, 2>, kBackward, kVector, kPrecise>(task, stream);
  }
  if ((rows + 127) / 128 * across >= 400) {
    return sides.columns <= 32
               ? launch<Blocking<128, 32, 4, 4, 1, 2, 0>, kBackward, kVector, kPrecise>(task,
                                                                                        stream)
               : launch<Blocking<128, 64, 2, 4, 1, 2, 3>, kBackward, kVector, kPrecise>(task,
                                                                                        stream);
  }
  return launch<Blocking<64, 64, 2, 4, 2, 3, 0>, kBackward, kVector, kPrecise>(task, stream);
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
                        f.x_is_tf32, f.rectify_y, f.round_y && !precise, false, f.y},
                       precise, stream);
}

void input_gradient(const Geometry& g, const CohortShape& cohort, const InputGradient& f,
                    bool precise, Stream stream) {
  choose_copies<true>({g, cohort, f.dy, f.weights, f.stride, nullptr, nullptr, f.where_positive,
                       f.scale, true, false, false, false, f.dx},
                      precise, stream);
}

}  // namespace fedep::gpu
