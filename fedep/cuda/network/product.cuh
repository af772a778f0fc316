// The inside of the cohort's matrix products: products of float tiles in shared memory by a block's
// warps, as TF32 or as three TF32 products that together are as exact as float.
#pragma once

#include "fedep/cuda/network/tensor_core.cuh"

namespace fedep::gpu {

constexpr int kDepth = 32;  // of a tile along the contracted index

// What is done to an operand's elements on their way into a TF32 product.
enum class Operand {
  rounded,  // to the nearest of TF32's numbers
  as_is,    // they are such numbers already, or may be cut off: gradients
  squared,
};

template <Operand kOperand>
__device__ inline float prepared(float x) {
  return kOperand == Operand::squared ? x * x : x;
}
template <Operand kOperand, bool kPrecise>
__device__ inline std::uint32_t high_part(float x) {
  if (kPrecise) return first_bits(x);
  return kOperand == Operand::as_is ? __float_as_uint(x) : to_tf32(x);
}

// Four 8 x 4 tiles, whose rows begin where eight lanes each say: lane 4r + p gets element p of row
// r of each. That is how tensor cores take operands whose contracted index is the inner one.
__device__ inline void load_tiles(const float* row, float (&to)[4]) {
  std::uint32_t bits[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "r"(shared_address(row)));
  for (int i = 0; i < 4; ++i) to[i] = __uint_as_float(bits[i]);
}

// A block's product of a [kM, kDepth] tile and a [kDepth, kN] tile, shared by kWarps = kWarpsM ×
// kWarpsN warps. `kInnerA`: the contracted index is the inner one of A's tile, else the outer one;
// likewise B. Where an inner one is, a thread takes the contracted indices p and p + 4 that the
// instruction means; else 2p and 2p + 1, which the order of a sum leaves free and for which rows
// need less filling between them. Strides keep a warp's reads in different banks. With kGroups > 1 a tile is that many times as deep, and each
// group of kWarps warps sums its part of the depth: merge() adds them up.
template <int kM_, int kN_, int kWarpsM, bool kInnerA, bool kInnerB, bool kPrecise,
          int kStages_ = 3, int kGroups_ = 1, int kWarps = 4>
struct TileProduct {
  static constexpr int kM = kM_, kN = kN_, kStages = kStages_;  // stages: tiles in flight
  static constexpr int kGroups = kGroups_, kTileDepth = kDepth * kGroups;
  static constexpr int kThreads = 32 * kWarps;  // of a group
  static constexpr int kWarpsN = kWarps / kWarpsM;
  static constexpr int kTilesM = kM / kWarpsM / 16, kTilesN = kN / kWarpsN / 8;
  static constexpr bool kInner = kInnerA || kInnerB;
  static constexpr int kStep = kInner ? 4 : 1;  // between a thread's two contracted indices
  static constexpr int kStrideA = kInnerA ? kTileDepth + 4 : kM + (kInner ? 8 : 4);
  static constexpr int kStrideB = kInnerB ? kTileDepth + 4 : kN + (kInner ? 8 : 4);
  static constexpr int kFloatsA = kInnerA ? kM * kStrideA : kTileDepth * kStrideA;
  static constexpr int kFloatsB = kInnerB ? kN * kStrideB : kTileDepth * kStrideB;
  static constexpr int kStrideC = kN + 4;
  static constexpr int kStageFloats = kFloatsA + kFloatsB;
  static constexpr int kFloats =
      kStages * kStageFloats > kM* kStrideC ? kStages* kStageFloats : kM* kStrideC;
  static_assert(kTilesM >= 1 && kTilesN >= 1, "tile too small for its warps");

  float c[kTilesM][kTilesN][4];

  // A tensor core's own sums lose bits one by one; exact products are therefore summed a tile at a
  // time.
  float folded[kPrecise ? kTilesM : 1][kPrecise ? kTilesN : 1][4];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          c[i][j][k] = 0.0f;
          if (kPrecise) folded[i][j][k] = 0.0f;
        }
  }

  // After every tile, and finish() after the last.
  __device__ void fold() {
    if constexpr (kPrecise) {
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j)
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            folded[i][j][k] += c[i][j][k];
            c[i][j][k] = 0.0f;
          }
    }
  }
  __device__ void finish() {
    if constexpr (kPrecise) {
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j)
#pragma unroll
          for (int k = 0; k < 4; ++k) c[i][j][k] = folded[i][j][k];
    }
  }

  __device__ static float* tile_a(float* shared, int stage) {
    return shared + stage * kStageFloats;
  }
  __device__ static float* tile_b(float* shared, int stage) {
    return shared + stage * kStageFloats + kFloatsA;
  }

  // This thread's warp: where its part of the tile begins, and its group's part of the depth.
  __device__ static int warp() { return (int(threadIdx.x) >> 5) % kWarps; }
  __device__ static int first_row() { return (warp() / kWarpsN) * (kM / kWarpsM); }
  __device__ static int first_column() { return (warp() % kWarpsN) * (kN / kWarpsN); }
  __device__ static int first_k() { return (int(threadIdx.x) / kThreads) * kDepth; }

  // Eight of the contracted indices, from k0 on.
  template <Operand kA, Operand kB>
  __device__ void add(const float* a_tile, const float* b_tile, int k0) {
    const int lane = int(threadIdx.x) & 31, group = lane >> 2;
    const int k = k0 + first_k() + (lane & 3) * (kInner ? 1 : 2);
    float a[kTilesM][4];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      if constexpr (kInnerA) {  // lanes name rows 0..15 at the first four indices, then at the next
        const int row = first_row() + i * 16 + (lane & 15);
        load_tiles(a_tile + row * kStrideA + k0 + first_k() + (lane >> 4) * 4, a[i]);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int m = first_row() + i * 16 + group + half * 8;
          a[i][half] = a_tile[k * kStrideA + m];
          a[i][half + 2] = a_tile[(k + kStep) * kStrideA + m];
        }
      }
#pragma unroll
      for (float& element : a[i]) element = prepared<kA>(element);
    }
    float b[kTilesN][2];
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      if constexpr (kInnerB) {  // two neighbours at once
        static_assert(kTilesN % 2 == 0, "tiles come in pairs");
        if (j % 2 == 1) continue;
        const int row = first_column() + j * 8 + (lane >> 4) * 8 + (lane & 7);
        float two[4];
        load_tiles(b_tile + row * kStrideB + k0 + first_k() + (lane >> 3 & 1) * 4, two);
#pragma unroll
        for (int part = 0; part < 4; ++part) b[j + part / 2][part % 2] = prepared<kB>(two[part]);
      } else {
        const int n = first_column() + j * 8 + group;
        b[j][0] = prepared<kB>(b_tile[k * kStrideB + n]);
        b[j][1] = prepared<kB>(b_tile[(k + kStep) * kStrideB + n]);
      }
    }
    std::uint32_t high_a[kTilesM][4], high_b[kTilesN][2];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int part = 0; part < 4; ++part) high_a[i][part] = high_part<kA, kPrecise>(a[i][part]);
#pragma unroll
    for (int j = 0; j < kTilesN; ++j)
#pragma unroll
      for (int part = 0; part < 2; ++part) high_b[j][part] = high_part<kB, kPrecise>(b[j][part]);
    if (kPrecise) {  // (high + low)(high + low) without low·low
      std::uint32_t low_a[kTilesM][4], low_b[kTilesN][2];
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          low_a[i][part] = __float_as_uint(a[i][part] - __uint_as_float(high_a[i][part]));
#pragma unroll
      for (int j = 0; j < kTilesN; ++j)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          low_b[j][part] = __float_as_uint(b[j][part] - __uint_as_float(high_b[j][part]));
#pragma unroll
      for (int i = 0; i < kTilesM; ++i)
#pragma unroll
        for (int j = 0; j < kTilesN; ++j) {
          multiply_tile(c[i][j], low_a[i], high_b[j]);
          multiply_tile(c[i][j], high_a[i], low_b[j]);
        }
    }
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) multiply_tile(c[i][j], high_a[i], high_b[j]);
  }

  // Four of the contracted indices, from k0 on, of tiles whose outer index that is.
  template <Operand kA, Operand kB>
  __device__ void add_four(const float* a_tile, const float* b_tile, int k0) {
    static_assert(!kInnerA && !kInnerB, "the contracted index is the outer one");
    const int group = (int(threadIdx.x) & 31) >> 2, k = k0 + (int(threadIdx.x) & 3);
    float a[kTilesM][2], b[kTilesN];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        a[i][half] = a_tile[k * kStrideA + first_row() + i * 16 + group + half * 8];
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) b[j] = b_tile[k * kStrideB + first_column() + j * 8 + group];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      const std::uint32_t high_a[2] = {high_part<kA, kPrecise>(a[i][0]),
                                       high_part<kA, kPrecise>(a[i][1])};
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const std::uint32_t high_b = high_part<kB, kPrecise>(b[j]);
        if (kPrecise) {
          const std::uint32_t low_a[2] = {__float_as_uint(a[i][0] - __uint_as_float(high_a[0])),
                                          __float_as_uint(a[i][1] - __uint_as_float(high_a[1]))};
          multiply_half_tile(c[i][j], low_a, high_b);
          multiply_half_tile(c[i][j], high_a, __float_as_uint(b[j] - __uint_as_float(high_b)));
        }
        multiply_half_tile(c[i][j], high_a, high_b);
      }
    }
  }

  // The groups' sums, in their order, into the first group's. All warps must be done with the
  // tiles.
  __device__ void merge(float* shared) {
    if constexpr (kGroups > 1) {
      const int thread = int(threadIdx.x) % kThreads;
      for (int group = 1; group < kGroups; ++group) {
        if (int(threadIdx.x) / kThreads == group) {
#pragma unroll
          for (int i = 0; i < kTilesM; ++i)
#pragma unroll
            for (int j = 0; j < kTilesN; ++j)
#pragma unroll
              for (int k = 0; k < 4; ++k)
                shared[((i * kTilesN + j) * 4 + k) * kThreads + thread] = c[i][j][k];
        }
        __syncthreads();
        if (int(threadIdx.x) < kThreads) {
#pragma unroll
          for (int i = 0; i < kTilesM; ++i)
#pragma unroll
            for (int j = 0; j < kTilesN; ++j)
#pragma unroll
              for (int k = 0; k < 4; ++k)
                c[i][j][k] += shared[((i * kTilesN + j) * 4 + k) * kThreads + thread];
        }
        __syncthreads();
      }
    }
  }

  // The products as rows in shared memory, [kM, kStrideC]. All warps must be done with the tiles.
  __device__ void lay_out(float* shared) const {
    if (int(threadIdx.x) >= kThreads) return;
    const int group = (int(threadIdx.x) & 31) >> 2, place = int(threadIdx.x) & 3;
    float* const corner = shared + (first_row() + group) * kStrideC + first_column() + place * 2;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        float* at = corner + i * 16 * kStrideC + j * 8;
        at[0] = c[i][j][0];
        at[1] = c[i][j][1];
        at[8 * kStrideC] = c[i][j][2];
        at[8 * kStrideC + 1] = c[i][j][3];
      }
  }
};

}  // namespace fedep::gpu
