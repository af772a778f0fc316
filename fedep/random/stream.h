// Addressed randomness: numbers belong to an address, not to a moment.
//
//   Stream stream({.seed = 1, .purpose = Purpose::shuffle, .round = 7, .client = client_key("ward-3")});
//   const auto order = permutation(stream, 100);
//
// Two streams with the same address give the same numbers, whoever asks, in whatever order and
// after any restart. A client is addressed by a hash of its id, never by its place in a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/random/philox.h"

namespace fedep {

// What the numbers are for. The values are part of every run's bits: append, never renumber.
enum class Purpose : std::uint32_t {
  sample_clients = 1,  // which clients a round asks
  initial_weights = 2,
  shuffle = 3,  // order of a client's examples
  augment = 4,  // crops and flips
  dropout = 5,
  labels = 6,     // labels drawn from the model (Fisher)
  langevin = 7,   // injected noise of the chain
  posterior = 8,  // draws from q for evaluation and NGVI
  partition = 9,  // data to clients
  synthetic_data = 10,
  toy = 11,
  test = 12,
  evaluation = 13,  // which held-out examples a round is scored on
  simulation = 14,  // truths and outcomes that intervals are tried on
};

struct Address {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::test;
  std::uint32_t round = 0;
  std::uint64_t client = 0;
  std::uint32_t step = 0;

  bool operator==(const Address&) const = default;
};

// Hash of a client's id; stable between versions and machines.
std::uint64_t client_key(std::string_view id);

// The numbers of one address, in order. Block i (four words) is philox({i, i>>32, step, round},
// key(seed, purpose, client)), so the fill functions below and a kernel on another device can start
// anywhere.
class Stream {
 public:
  explicit Stream(const Address& address);

  std::uint32_t bits();
  std::uint64_t bits64();
  double uniform();                          // in (0, 1), never 0 or 1, 53 bits
  double normal();                           // standard normal
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), without bias; bound > 0

  PhiloxCounter block(std::uint64_t index) const;
  PhiloxKey key() const { return key_; }  // for whoever computes blocks elsewhere

 private:
  PhiloxKey key_;
  std::uint32_t step_;
  std::uint32_t round_;
  std::uint64_t next_block_ = 0;
  PhiloxCounter words_{};
  int used_ = 4;  // of words_
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

// out[4i .. 4i+3] come from block i of the address: float uniforms in (0, 1), and Box-Muller
// normals of them. Normals may also begin at number `first`, a multiple of 4.
void fill_uniform(const Address& address, std::span<float> out);
void fill_normal(const Address& address, std::span<float> out, std::uint64_t first = 0);
// A normal truncated to ±2 standard deviations (redrawn, not clipped), of unit scale before
// truncation.
void fill_truncated_normal(const Address& address, std::span<float> out);

// A random order of 0..n-1 (Fisher-Yates).
std::vector<std::uint32_t> permutation(Stream& stream, std::size_t n);

// k distinct numbers below n, each subset equally likely, in ascending order; O(k) memory (Floyd's
// method). Throws std::invalid_argument when k > n.
std::vector<std::size_t> sample_without_replacement(Stream& stream, std::size_t n, std::size_t k);

}  // namespace fedep
