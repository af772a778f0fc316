// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011): a keyed bijection from a 128-bit counter to 128 random
// bits. Any block can be computed at any time, on any device, in any order. Not for secrets: those
// come from the operating system.
#pragma once

#include <array>
#include <cstdint>

namespace fedep {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint64_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint64_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;  // what a key grows by in a round
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = kPhiloxMultiplier0 * counter[0];
    const std::uint64_t b = kPhiloxMultiplier1 * counter[2];
    counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
               std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  return counter;
}

}  // namespace fedep
