// Many normals at once. Words of 64 blocks lie word by word, so that the transform's loop
// vectorises; on AVX-512 the blocks themselves are computed eight at a time. The bits are the same
// everywhere.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "fedep/random/box_muller.h"
#include "fedep/random/stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fedep {
namespace {

constexpr std::size_t kBlocks = 64;
constexpr std::size_t kNormals = 4 * kBlocks;

using Words = std::array<std::array<std::uint32_t, kBlocks>, 4>;

[[gnu::always_inline]] inline void to_normals(const Words& words, float* out) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const auto [a, b] = box_muller(words[0][i], words[1][i]);
    const auto [c, d] = box_muller(words[2][i], words[3][i]);
    out[4 * i] = a;
    out[4 * i + 1] = b;
    out[4 * i + 2] = c;
    out[4 * i + 3] = d;
  }
}

// `out` takes the normals of blocks first … first + kBlocks - 1.
void fill_blocks(const Address& address, PhiloxKey key, std::uint64_t first, float* out) {
  Words words;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::uint64_t index = first + i;
    const PhiloxCounter block = philox(
        {std::uint32_t(index), std::uint32_t(index >> 32), address.step, address.round}, key);
    for (std::size_t j = 0; j < 4; ++j) words[j][i] = block[j];
  }
  to_normals(words, out);
}

#if defined(__x86_64__)

// A word sits in the lower half of a 64-bit lane; what the upper half holds no product reads.
// (Intrinsics with a mask, of which every bit is set: GCC 12 warns of the others' own code.)
using Lanes = std::uint64_t __attribute__((vector_size(64)));

[[gnu::target("avx512f")]] void fill_blocks_avx512(const Address& address, PhiloxKey first_key,
                                                   std::uint64_t first, float* out) {
  const __m512i multiplier0 = __m512i(Lanes{} + kPhiloxMultiplier0);
  const __m512i multiplier1 = __m512i(Lanes{} + kPhiloxMultiplier1);
  Words words;
  for (std::size_t i = 0; i < kBlocks; i += 8) {
    const Lanes index = Lanes{0, 1, 2, 3, 4, 5, 6, 7} + (first + i);
    Lanes x[4] = {index, index >> 32, Lanes{} + address.step, Lanes{} + address.round};
    PhiloxKey key = first_key;
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const Lanes a = Lanes(_mm512_maskz_mul_epu32(0xff, __m512i(x[0]), multiplier0));
      const Lanes b = Lanes(_mm512_maskz_mul_epu32(0xff, __m512i(x[2]), multiplier1));
      x[0] = (b >> 32) ^ x[1] ^ key[0];
      x[2] = (a >> 32) ^ x[3] ^ key[1];
      x[1] = b;
      x[3] = a;
      key[0] += kPhiloxWeyl0;
      key[1] += kPhiloxWeyl1;
    }
    for (std::size_t j = 0; j < 4; ++j) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(&words[j][i]),
                          _mm512_maskz_cvtepi64_epi32(0xff, __m512i(x[j])));
    }
  }
  to_normals(words, out);
}

auto* widest() { return __builtin_cpu_supports("avx512f") ? fill_blocks_avx512 : fill_blocks; }

#else

auto* widest() { return fill_blocks; }

#endif

}  // namespace

void fill_normal(const Address& address, std::span<float> out, std::uint64_t first) {
  if (first % 4 != 0) throw std::invalid_argument("fill_normal: first must be a multiple of 4");
  static auto* const fill = widest();
  const PhiloxKey key = Stream(address).key();
  std::uint64_t block = first / 4;
  std::size_t begin = 0;
  for (; begin + kNormals <= out.size(); begin += kNormals, block += kBlocks) {
    fill(address, key, block, out.data() + begin);
  }
  if (begin == out.size()) return;
  std::array<float, kNormals> rest;
  fill(address, key, block, rest.data());
  std::copy_n(rest.begin(), out.size() - begin, out.begin() + std::ptrdiff_t(begin));
}

}  // namespace fedep
