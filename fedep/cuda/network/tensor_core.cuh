// What products on tensor cores are made of: asynchronous copies into shared memory, TF32 numbers
// (floats with 11-bit mantissas), and products of small tiles.
#pragma once

#include <cstdint>

#include "fedep/cuda/network/convolution_kernels.h"

namespace fedep::gpu {

__device__ inline int divide(const Divisor& d, int n) {
  if (d.divisor == 1) return n;
  return int((__umulhi(std::uint32_t(n), d.factor) + std::uint32_t(n)) >> d.shift);
}

// An address in shared memory, as copies take it.
__device__ inline unsigned shared_address(const float* p) {
  return unsigned(__cvta_generic_to_shared(p));
}

// kPart floats from global to shared memory; zeros where not valid.
template <int kPart>
__device__ inline void copy(unsigned to, const float* from, bool valid) {
  const int bytes = valid ? kPart * 4 : 0;
  if constexpr (kPart == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from), "r"(bytes));
  }
}
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;\n" ::); }
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
}

// A tensor core takes a float's first 19 bits: sign, exponent and ten bits of the mantissa. Half of
// the last of them added before makes that a rounding; it is an integer addition, since a float's
// bits ascend with its size.
__device__ inline std::uint32_t first_bits(float x) { return __float_as_uint(x) & 0xFFFFE000u; }
__device__ inline std::uint32_t to_tf32(float x) { return __float_as_uint(x) + 0x1000u; }
__device__ inline float rounded_to_tf32(float x) {
  return __uint_as_float(first_bits(__uint_as_float(to_tf32(x))));
}

// c += a b for a 16x8 tile, contracted over 8.
__device__ inline void multiply_tile(float (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same contracted over 4.
__device__ inline void multiply_half_tile(float (&c)[4], const std::uint32_t (&a)[2],
                                          std::uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// kPart neighbouring floats at once.
template <int kPart>
__device__ inline void load_part(const float* from, float (&to)[kPart]) {
  if constexpr (kPart == 4) {
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
  } else {
    to[0] = from[0];
  }
}
template <int kPart>
__device__ inline void store_part(const float (&from)[kPart], float* to) {
  if constexpr (kPart == 4) {
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
  } else {
    to[0] = from[0];
  }
}

}  // namespace fedep::gpu
