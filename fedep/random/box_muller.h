// Normals from uniforms by Box and Muller's transform, in plain float arithmetic: no call into
// libm, so the bits are the same on every machine that rounds as IEEE asks, and loops over it
// vectorise. Logarithm and sine are series short enough to see and long enough for a float's 24
// bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace fedep {

// 24 random bits in the middle of their interval: never 0 or 1, exact in float.
inline float unit_float(std::uint32_t word) {
  return (float(std::int32_t(word >> 8)) + 0.5f) * 0x1p-24f;
}

// Natural logarithm of a positive, normal x: x = m 2^e with m in [√½, √2), and
// log m = 2 artanh s = 2(s + s³/3 + s⁵/5 + …), s = (m - 1)/(m + 1), |s| < 0.172.
inline float series_log(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  // Subtracting √½'s bits makes the exponent change where the mantissa passes √½.
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float m = std::bit_cast<float>(bits - (exponent << 23));
  const float s = (m - 1.0f) / (m + 1.0f);
  const float s2 = s * s;
  const float tail = s2 * (1 / 3.0f + s2 * (1 / 5.0f + s2 * (1 / 7.0f + s2 * (1 / 9.0f))));
  return float(exponent) * 0.693147181f + 2.0f * (s + s * tail);
}

struct SinCos {
  float sin, cos;
};

// Sine and cosine of 2π u, 0 <= u < 1: the nearest quarter turn k, and Taylor's series of the rest,
// at most an eighth of a turn.
inline SinCos turn(float u) {
  const float quarters = 4.0f * u;
  const std::int32_t k = std::int32_t(quarters + 0.5f);
  const float x = (quarters - float(k)) * 1.57079633f;
  const float x2 = x * x;
  const float sine =
      x - x * x2 * (1 / 6.0f - x2 * (1 / 120.0f - x2 * (1 / 5040.0f - x2 * (1 / 362880.0f))));
  const float cosine =
      1.0f - x2 * (1 / 2.0f - x2 * (1 / 24.0f - x2 * (1 / 720.0f - x2 * (1 / 40320.0f))));
  const bool odd = (k & 1) != 0;
  const float a = odd ? cosine : sine;
  const float b = odd ? sine : cosine;
  return {(k & 2) != 0 ? -a : a, ((k + 1) & 2) != 0 ? -b : b};
}

struct NormalPair {
  float first, second;
};

inline NormalPair box_muller(std::uint32_t a, std::uint32_t b) {
  const float radius = std::sqrt(-2.0f * series_log(unit_float(a)));
  const SinCos angle = turn(unit_float(b));
  return {radius * angle.cos, radius * angle.sin};
}

}  // namespace fedep
