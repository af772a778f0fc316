// The numbers of random/ on the GPU: the same Philox words, and uniforms and normals of them with
// the same bits. Every product, sum, quotient and root is rounded by itself, as on the CPU (which
// is compiled without contraction), whatever -fmad says.
//
//   const Words words = philox_block(address, i / 4);   // of a StreamAddress
//   const float4 normals = four_normals(words);         // = fill_normal's out[i .. i+3]
#pragma once

#include <cstdint>

#include "fedep/cuda/device/stream_address.h"

namespace fedep {

struct Words {
  std::uint32_t a, b, c, d;
};

// random/philox.h
__device__ __forceinline__ Words philox(Words counter, std::uint32_t key0, std::uint32_t key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t high0 = __umulhi(0xD2511F53u, counter.a), low0 = 0xD2511F53u * counter.a;
    const std::uint32_t high1 = __umulhi(0xCD9E8D57u, counter.c), low1 = 0xCD9E8D57u * counter.c;
    counter = {high1 ^ counter.b ^ key0, low1, high0 ^ counter.d ^ key1, low0};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Words 4 block .. 4 block + 3 of the stream.
__device__ __forceinline__ Words philox_block(const StreamAddress& at, std::uint64_t block) {
  return philox({std::uint32_t(block), std::uint32_t(block >> 32), at.step, at.round}, at.key0,
                at.key1);
}

__device__ __forceinline__ std::uint32_t word_of(const Words& words, unsigned i) {
  return i == 0 ? words.a : i == 1 ? words.b : i == 2 ? words.c : words.d;
}

// Stream::uniform()'s number from two words, the first the lower: in (0, 1), 53 bits. The k-th
// number of a stream that is asked for nothing else has words 2k and 2k + 1.
__device__ __forceinline__ double unit_double(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t(high) << 32) | low;
  return __dmul_rn(__dadd_rn(__ull2double_rn(bits >> 12), 0.5), 0x1p-52);
}

// The k-th Stream::uniform() of a fresh stream.
__device__ __forceinline__ double uniform_at(const StreamAddress& at, std::uint64_t k) {
  const Words words = philox_block(at, k >> 1);
  return (k & 1) != 0 ? unit_double(words.c, words.d) : unit_double(words.a, words.b);
}

// random/box_muller.h, expression by expression.
__device__ __forceinline__ float unit_float(std::uint32_t word) {
  return __fmul_rn(__fadd_rn(__int2float_rn(std::int32_t(word >> 8)), 0.5f), 0x1p-24f);
}

__device__ __forceinline__ float series_log(float x) {
  const std::int32_t bits = __float_as_int(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float m = __int_as_float(bits - (exponent << 23));
  const float s = __fdiv_rn(__fadd_rn(m, -1.0f), __fadd_rn(m, 1.0f));
  const float s2 = __fmul_rn(s, s);
  float tail = __fmul_rn(s2, 1 / 9.0f);
  tail = __fmul_rn(s2, __fadd_rn(1 / 7.0f, tail));
  tail = __fmul_rn(s2, __fadd_rn(1 / 5.0f, tail));
  tail = __fmul_rn(s2, __fadd_rn(1 / 3.0f, tail));
  return __fadd_rn(__fmul_rn(__int2float_rn(exponent), 0.693147181f),
                   __fmul_rn(2.0f, __fadd_rn(s, __fmul_rn(s, tail))));
}

// x: sine, y: cosine of 2π u.
__device__ __forceinline__ float2 turn(float u) {
  const float quarters = __fmul_rn(4.0f, u);
  const std::int32_t k = std::int32_t(__fadd_rn(quarters, 0.5f));
  const float x = __fmul_rn(__fadd_rn(quarters, -__int2float_rn(k)), 1.57079633f);
  const float x2 = __fmul_rn(x, x);
  float p = __fmul_rn(x2, 1 / 362880.0f);
  p = __fmul_rn(x2, __fadd_rn(1 / 5040.0f, -p));
  p = __fmul_rn(x2, __fadd_rn(1 / 120.0f, -p));
  const float sine = __fadd_rn(x, -__fmul_rn(__fmul_rn(x, x2), __fadd_rn(1 / 6.0f, -p)));
  float q = __fmul_rn(x2, 1 / 40320.0f);
  q = __fmul_rn(x2, __fadd_rn(1 / 720.0f, -q));
  q = __fmul_rn(x2, __fadd_rn(1 / 24.0f, -q));
  const float cosine = __fadd_rn(1.0f, -__fmul_rn(x2, __fadd_rn(1 / 2.0f, -q)));
  const bool odd = (k & 1) != 0;
  const float a = odd ? cosine : sine;
  const float b = odd ? sine : cosine;
  return make_float2((k & 2) != 0 ? -a : a, ((k + 1) & 2) != 0 ? -b : b);
}

__device__ __forceinline__ float2 box_muller(std::uint32_t a, std::uint32_t b) {
  const float radius = __fsqrt_rn(__fmul_rn(-2.0f, series_log(unit_float(a))));
  const float2 angle = turn(unit_float(b));
  return make_float2(__fmul_rn(radius, angle.y), __fmul_rn(radius, angle.x));
}

__device__ __forceinline__ float4 four_normals(const Words& words) {
  const float2 first = box_muller(words.a, words.b), second = box_muller(words.c, words.d);
  return make_float4(first.x, first.y, second.x, second.y);
}

}  // namespace fedep
