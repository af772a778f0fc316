#include "fedep/message/array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace fedep {
namespace {

// A float is NaN or infinite when all its exponent bits are set: adding one to the lowest of them
// then carries into the sign bit. Words of 64 bits hold two f32 or one f64, and no carry crosses
// from one to the next.
template <class T>
struct FloatBits;
template <>
struct FloatBits<float> {
  static constexpr std::uint64_t exponent = 0x7f800000'7f800000, low = 0x00800000'00800000,
                                 sign = 0x80000000'80000000;
};
template <>
struct FloatBits<double> {
  static constexpr std::uint64_t exponent = 0x7ff00000'00000000, low = 0x00100000'00000000,
                                 sign = 0x80000000'00000000;
};

template <class T>
bool words_finite(std::span<const std::byte> bytes) {
  using Bits = FloatBits<T>;
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kLanes> carry = {};
  std::array<std::uint64_t, kLanes> word = {};
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(word)) {
    const std::size_t n = std::min(sizeof(word), bytes.size() - at);
    if (n < sizeof(word)) word = {};
    std::memcpy(word.data(), bytes.data() + at, n);
    for (std::size_t i = 0; i < kLanes; ++i) carry[i] |= (word[i] & Bits::exponent) + Bits::low;
  }
  std::uint64_t any = 0;
  for (const std::uint64_t lane : carry) any |= lane;
  return (any & Bits::sign) == 0;
}

template <class T>
std::size_t first_not_finite_in(std::span<const T> values) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!words_finite<T>(std::as_bytes(values))) {
      const auto bad = [](T x) { return !std::isfinite(x); };
      return std::size_t(std::find_if(values.begin(), values.end(), bad) - values.begin());
    }
  }
  return values.size();
}

}  // namespace

ArrayView view(const Array& array) {
  return std::visit([](const auto& values) { return ArrayView(std::span(values)); }, array);
}

std::span<const std::byte> bytes_of(const ArrayView& array) {
  return std::visit([](const auto& values) { return std::as_bytes(values); }, array);
}

std::size_t first_not_finite(const ArrayView& array) {
  return std::visit([](const auto& values) { return first_not_finite_in(values); }, array);
}

}  // namespace fedep
