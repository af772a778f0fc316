#include "fedep/random/stream.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "fedep/random/box_muller.h"

namespace fedep {
namespace {

// The finaliser of splitmix64: a bijection whose every output bit depends on every input bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

PhiloxKey key_of(const Address& address) {
  const std::uint64_t hash =
      mix(mix(mix(address.seed) ^ std::uint64_t(address.purpose)) ^ address.client);
  return {std::uint32_t(hash), std::uint32_t(hash >> 32)};
}

}  // namespace

std::uint64_t client_key(std::string_view id) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, then mixed
  for (const char c : id) hash = (hash ^ std::uint8_t(c)) * 0x100000001B3;
  return mix(hash);
}

Stream::Stream(const Address& address)
    : key_(key_of(address)), step_(address.step), round_(address.round) {}

PhiloxCounter Stream::block(std::uint64_t index) const {
  return philox({std::uint32_t(index), std::uint32_t(index >> 32), step_, round_}, key_);
}

std::uint32_t Stream::bits() {
  if (used_ == 4) {
    words_ = block(next_block_++);
    used_ = 0;
  }
  return words_[std::size_t(used_++)];
}

std::uint64_t Stream::bits64() {
  const std::uint64_t low = bits();
  return low | std::uint64_t(bits()) << 32;
}

double Stream::uniform() { return (double(bits64() >> 12) + 0.5) * 0x1p-52; }

double Stream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

std::uint64_t Stream::below(std::uint64_t bound) {
  // Values in the last, incomplete copy of [0, bound) are drawn again.
  const std::uint64_t excess = (~std::uint64_t(0) % bound + 1) % bound;
  std::uint64_t value = bits64();
  while (value > ~std::uint64_t(0) - excess) value = bits64();
  return value % bound;
}

void fill_uniform(const Address& address, std::span<float> out) {
  const Stream stream(address);
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const PhiloxCounter words = stream.block(i / 4);
    for (std::size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = unit_float(words[j]);
  }
}

void fill_truncated_normal(const Address& address, std::span<float> out) {
  Stream stream(address);
  for (float& x : out) {
    do {
      x = float(stream.normal());
    } while (std::fabs(x) > 2.0f);
  }
}

std::vector<std::uint32_t> permutation(Stream& stream, std::size_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[stream.below(i)]);
  return order;
}

std::vector<std::size_t> sample_without_replacement(Stream& stream, std::size_t n, std::size_t k) {
  if (k > n) {
    throw std::invalid_argument("sample_without_replacement: sample must be at most " +
                                std::to_string(n) + " of " + std::to_string(n) + ", but is " +
                                std::to_string(k));
  }
  std::set<std::size_t> chosen;
  for (std::size_t i = n - k; i < n; ++i) {
    const std::size_t candidate = stream.below(i + 1);
    chosen.insert(chosen.contains(candidate) ? i : candidate);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace fedep
