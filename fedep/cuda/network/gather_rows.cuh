// The rows of gather_product.cu's products, and what becomes of them. Forward, rows are output
// positions of a client's images and meet inputs through taps; backward, rows are input positions
// and meet derivatives of outputs.
#pragma once

#include <cstdint>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/network/product.cuh"

namespace fedep::gpu {

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
  bool round_out;    // to TF32
  bool by_position;  // a block's rows are examples at one position
  float* out;
};

// How a block does its share: a tile of kM rows and kN columns, by kGroups groups of kWarps warps,
// with registers for kResident such blocks on a multiprocessor (0: as many as the compiler likes).
template <int kM_, int kN_, int kWarpsM_, int kWarps_, int kGroups_, int kStages_, int kResident_>
struct Blocking {
  static constexpr int kM = kM_, kN = kN_, kWarpsM = kWarpsM_, kWarps = kWarps_;
  static constexpr int kGroups = kGroups_, kStages = kStages_, kResident = kResident_;
  static constexpr int kBlock = 32 * kWarps * kGroups;  // threads

  template <bool kBackward, bool kPrecise>
  using Product = TileProduct<kM, kN, kWarpsM, true, kBackward, kPrecise, kStages, kGroups, kWarps>;
};

// The two sides of a convolution: maps that rows are positions of, and maps that they meet.
template <bool kBackward>
struct Sides {
  int contracted;  // channels summed over
  int columns;     // channels of the result
  int map_width, positions;
  int a_height, a_width;
  int halves;  // backward through a stride of two a row meets every other tap
  Divisor by_positions, by_contracted;

  __host__ __device__ explicit Sides(const Geometry& g)
      : contracted(kBackward ? g.out : g.in),
        columns(kBackward ? g.in : g.out),
        map_width(kBackward ? g.width : g.out_width),
        positions(kBackward ? g.height * g.width : g.out_height * g.out_width),
        a_height(kBackward ? g.out_height : g.height),
        a_width(kBackward ? g.out_width : g.width),
        halves(kBackward ? g.stride - 1 : 0),
        by_positions(kBackward ? g.by_input_positions : g.by_output_positions),
        by_contracted(kBackward ? g.by_out : g.by_in) {}
};

constexpr int kMaskTaps = 32;  // taps of a row, as bits

// A block's rows, in shared memory. Places are positions of A's maps, counted over all images.
template <int kM>
struct GatherRows {
  int image[kM];      // -1: none
  int out[kM];        // the row's position, counted over all images
  int begin[kM];      // where it meets tap (0, 0), be there something or not
  unsigned taps[kM];  // bit t: tap t meets data
  short y[kM], x[kM];
  int tap_shift[kMaskTaps];  // place that a tap meets, less the row's begin
  int met[kMaskTaps];        // whether a tap meets data in some row
  std::uint8_t tap_y[kMaskTaps], tap_x[kMaskTaps];

  // Before wait_for_previous(): reads nothing but the task. A block's barrier must follow.
  template <bool kBackward>
  __device__ void begin_taps(const Geometry& g, const Sides<kBackward>& sides) {
    const int t = int(threadIdx.x);
    if (t >= kMaskTaps) return;
    met[t] = 0;
    if (t >= g.taps) return;
    const int ky = g.tap[t] / g.kernel, kx = g.tap[t] - ky * g.kernel;
    tap_y[t] = std::uint8_t(ky);
    tap_x[t] = std::uint8_t(kx);
    const int shift = (ky >> sides.halves) * sides.a_width + (kx >> sides.halves);
    tap_shift[t] = kBackward ? -shift : shift;
  }

  // Place that row r meets through tap (ky, kx); negative: padding.
  template <bool kBackward>
  __device__ int place(const Sides<kBackward>& sides, int r, int ky, int kx) const {
    if (image[r] < 0) return -1;
    int row = kBackward ? y[r] - ky : y[r] + ky, column = kBackward ? x[r] - kx : x[r] + kx;
    if (row < 0 || column < 0 || ((row | column) & sides.halves) != 0) return -1;
    row >>= sides.halves;
    column >>= sides.halves;
    if (row >= sides.a_height || column >= sides.a_width) return -1;
    return (image[r] * sides.a_height + row) * sides.a_width + column;
  }

  // Which image and position each row is and which taps it meets; ends with a barrier. `position`:
  // the one all rows are at, or -1. Gives the taps that meet data in some row.
  template <bool kBackward, int kBlock>
  __device__ unsigned fill(const Geometry& g, const Sides<kBackward>& sides, int first_row,
                           int position, int count) {
    const int tid = int(threadIdx.x);
    for (int r = tid; r < kM; r += kBlock) {
      int own_image = first_row + r, own_position = position;
      if (position < 0) {
        own_image = divide(sides.by_positions, first_row + r);
        own_position = first_row + r - own_image * sides.positions;
      }
      const int map_y = own_position / sides.map_width,
                map_x = own_position - map_y * sides.map_width;
      const int row = kBackward ? map_y + g.pad_top : map_y * g.stride - g.pad_top;
      const int column = kBackward ? map_x + g.pad_left : map_x * g.stride - g.pad_left;
      image[r] = own_image < count ? own_image : -1;
      out[r] = own_image * sides.positions + own_position;
      y[r] = short(row);
      x[r] = short(column);
      begin[r] = (own_image * sides.a_height + (row >> sides.halves)) * sides.a_width +
                 (column >> sides.halves);
      taps[r] = 0;
    }
    __syncthreads();
    const int listed = min(g.taps, kMaskTaps);
    for (int i = tid; i < kM * listed; i += kBlock) {
      const int t = i / kM, r = i % kM;
      if (place(sides, r, tap_y[t], tap_x[t]) < 0) continue;
      atomicOr(&taps[r], 1u << t);
      met[t] = 1;
    }
    __syncthreads();
    return __ballot_sync(0xFFFFFFFFu, met[tid % 32] != 0);
  }
};

// The product that lies in shared memory, rows kStride apart, to where it belongs, with all that is
// done on the way. A thread has kM kN / kPart / kBlock parts, all in its own columns.
template <int kM, int kN, int kStride, int kBlock, int kPart, bool kBackward>
__device__ void store_rows(const GatherTask& task, const Sides<kBackward>& sides,
                           const GatherRows<kM>& rows, int client, int first_column,
                           const float* shared) {
  constexpr int kAcross = kN / kPart, kStep = kBlock / kAcross;
  const int tid = int(threadIdx.x), column = first_column + (tid % kAcross) * kPart;
  if (column >= sides.columns) return;
  const std::size_t base = std::size_t(client) * std::size_t(task.cohort.rows) *
                               std::size_t(sides.positions) * std::size_t(sides.columns) +
                           std::size_t(column);
  float bias[kPart] = {};
  if (task.bias != nullptr) {
    for (int j = 0; j < kPart; ++j) {
      bias[j] = task.bias[std::size_t(client / task.cohort.sharing) * task.stride +
                          std::size_t(column + j)];
    }
  }
#pragma unroll 4
  for (int r = tid / kAcross; r < kM; r += kStep) {
    if (rows.image[r] < 0) continue;
    const std::size_t at = base + std::size_t(rows.out[r]) * std::size_t(sides.columns);
    float value[kPart], add[kPart] = {}, sign[kPart];
    load_part<kPart>(shared + r * kStride + column - first_column, value);
    if (task.add != nullptr) load_part<kPart>(task.add + at, add);
    if (task.where_positive != nullptr) load_part<kPart>(task.where_positive + at, sign);
#pragma unroll
    for (int j = 0; j < kPart; ++j) {
      value[j] = value[j] * task.scale + bias[j] + add[j];
      if (task.rectify_out) value[j] = fmaxf(value[j], 0.0f);
      if (task.round_out) value[j] = rounded_to_tf32(value[j]);
      if (task.where_positive != nullptr && !(sign[j] > 0.0f)) value[j] = 0.0f;
    }
    store_part<kPart>(value, task.out + at);
  }
}

}  // namespace fedep::gpu
