// The exponential in plain arithmetic, for one float or a block of sixteen: several times
// the speed of libm's, and the same bits on every CPU and for both forms.
//
//   std::memcpy(&z, row, sizeof(FloatBlock));  // z a FloatBlock; within at_full_width()
//   exponentiate<FloatBlock, WordBlock>(z);
//
// Blocks go by reference: passing them by value would be another convention on every CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fedep {

constexpr std::size_t kBlock = 16;
typedef float FloatBlock __attribute__((vector_size(kBlock * sizeof(float))));
typedef std::uint32_t WordBlock __attribute__((vector_size(kBlock * sizeof(std::uint32_t))));

// x = e^x within 2 ulp; 0 for x below -87, e^88 above 88.
template <class Float, class Word>
[[gnu::always_inline]] inline void exponentiate(Float& x) {
  // x = n log 2 + r with |r| <= log(2)/2. Adding 1.5 * 2^23 rounds to a whole number.
  constexpr float kRounder = 12582912.0f;
  const Float shifted = x * 1.44269504f + kRounder;
  const Float n = shifted - kRounder;
  const Float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // Minimax polynomial of (e^r - 1 - r) / r^2 (Cephes, Moshier).
  Float p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const Float e_r = p * (r * r) + r + 1.0f;
  // 2^n, from the low bits of `shifted`. (std::bit_cast would pass a block by value.)
  Word bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23;
  Float power;
  std::memcpy(&power, &bits, sizeof power);
  const Float e_x = e_r * power;
  const Float from_below = x < -87.0f ? Float{} : e_x;
  x = x > 88.0f ? Float{} + 1.65163625e38f : from_below;
}

inline float exponential(float x) {
  exponentiate<float, std::uint32_t>(x);
  return x;
}

}  // namespace fedep
