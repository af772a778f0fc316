// update_weights() and add_squares(): gradients of weights with the SGD step (or the sum of squares)
// done where the gradient is made, so that it is never stored. Which kernel, with which tiles.
#include <algorithm>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/network/weight_product.cuh"

namespace fedep::gpu {
namespace {

constexpr int kTileOfTaps = 96;  // rows of a tile over several taps, where all_taps_meet_all()

// A tile within one tap sums over that tap's positions alone.
bool has_wide_taps(const Geometry& g) { return g.in % 64 == 0 || g.taps == 1; }

template <int kM, int kN, int kWarpsM, int kWarps, bool kVector, bool kPrecise, Sum kSum,
          bool kFetch>
void launch(const WeightTask& task, Stream stream) {
  using Product = TileProduct<kM, kN, kWarpsM, false, false, kPrecise, kFetch ? 2 : 3, 1, kWarps>;
  const auto kernel = weight_product<kM, kN, kWarpsM, kWarps, kVector, kPrecise, kSum, kFetch>;
  constexpr int kMost = (Product::kFloats + (kFetch ? 4 * kM * kN : 0)) * int(sizeof(float));
  allow_shared_memory(reinterpret_cast<const void*>(kernel), kMost);
  const Update& u = task.update;
  const int fetched = kFetch ? 1 + (u.mu != 0) + (u.eta != nullptr) + u.diagonal : 0;
  const int bytes = (Product::kFloats + fetched * kM * kN) * int(sizeof(float));
  const Geometry& g = task.g;
  const dim3 grid(unsigned((g.taps * g.in + kM - 1) / kM), unsigned((g.out + kN - 1) / kN),
                  unsigned(task.rows() * task.splits));
  kernel<<<grid, 32 * kWarps, bytes, stream>>>(task);
  check_launch("weight_product");
  if (task.splits > 1) finish_splits(task, kSum != Sum::gradients, kVector, stream);
}

template <bool kVector, bool kPrecise, Sum kSum>
void choose_tile(const WeightTask& task, Stream stream) {
  const Geometry& g = task.g;
  const bool wide = has_wide_taps(g);
  if constexpr (kVector && kSum == Sum::gradients) {
    if (task.splits == 1) {
      return wide ? launch<64, 64, 4, 8, true, kPrecise, kSum, true>(task, stream)
                  : launch<32, 64, 1, 4, true, kPrecise, kSum, true>(task, stream);
    }
  }
  if constexpr (kVector) {
    if (!wide && all_taps_meet_all(g)) {
      return launch<kTileOfTaps, 64, 2, 8, true, kPrecise, kSum, false>(task, stream);
    }
    if (g.taps == 1 && g.in <= 32 && g.out <= 32) {
      return launch<32, 32, 2, 4, true, kPrecise, kSum, false>(task, stream);
    }
  }
  if (wide) return launch<64, 64, 4, 8, kVector, kPrecise, kSum, false>(task, stream);
  return launch<32, 64, 2, 8, kVector, kPrecise, kSum, false>(task, stream);
}

template <Sum kSum>
void choose_copies(const WeightTask& task, bool vector, bool precise, Stream stream) {
  if (vector) {
    precise ? choose_tile<true, true, kSum>(task, stream)
            : choose_tile<true, false, kSum>(task, stream);
  } else {
    precise ? choose_tile<false, true, kSum>(task, stream)
            : choose_tile<false, false, kSum>(task, stream);
  }
}

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

}  // namespace

// Enough blocks for every multiprocessor to have a dozen, but parts of several tiles.
int gradient_splits(const Geometry& g, int clients) {
  const int tile_m = has_wide_taps(g) ? 64 : all_taps_meet_all(g) ? kTileOfTaps : 32;
  const long blocks = long((g.taps * g.in + tile_m - 1) / tile_m) * ((g.out + 63) / 64) * clients;
  const int positions = g.out_height * g.out_width;
  return int(std::max<long>(1, std::min<long>({kMostSplits, 2000 / blocks, positions / 8})));
}

void update_weights(const Geometry& g, const CohortShape& cohort, const WeightGradient& f,
                    const Update& u, bool precise, Stream stream) {
  const int splits = f.partial == nullptr ? 1 : gradient_splits(g, cohort.most_clients());
  const bool vector = g.in % 4 == 0 && g.out % 4 == 0 && u.stride % 4 == 0 && aligned(u.theta) &&
                      aligned(u.momentum) && aligned(u.eta) && (!u.diagonal || aligned(u.lambda));
  const WeightTask task{g, cohort, f.x, f.x_is_tf32, f.dy, splits, f.partial, u, {}};
  if (vector && splits == 1 && has_few_terms(g, cohort)) return update_directly(task, stream);
  choose_copies<Sum::gradients>(task, vector, precise, stream);
}

void add_squares(const Geometry& g, const CohortShape& cohort, const WeightGradient& f,
                 const SquaredSum& to, bool precise, Stream stream) {
  const int rows = cohort.most_clients() / to.minibatches;
  const int splits = f.partial == nullptr ? 1 : gradient_splits(g, rows);
  const bool vector = g.in % 4 == 0 && g.out % 4 == 0 && to.stride % 4 == 0 && aligned(to.sum);
  const WeightTask task{g, cohort, f.x, f.x_is_tf32, f.dy, splits, f.partial, {}, to};
  // With one position an example's gradient is one product, and its square the product of squares.
  if (g.out_height * g.out_width == 1) {
    choose_copies<Sum::squared_products>(task, vector, precise, stream);
  } else {
    choose_copies<Sum::squares>(task, vector, precise, stream);
  }
}

}  // namespace fedep::gpu
