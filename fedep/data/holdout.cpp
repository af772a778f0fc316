#include "fedep/data/holdout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "fedep/message/check.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

// No run's seed: part of the definition of the test sets.
constexpr std::uint64_t kSplitSeed = 0x686f6c64;

Stream split_stream(std::string_view client) {
  return Stream({.seed = kSplitSeed, .purpose = Purpose::partition, .client = client_key(client)});
}

}  // namespace

std::size_t held_out_count(std::size_t examples, double fraction) {
  check_in("held_out", "test_fraction", fraction, 0, 1);
  if (examples == 0) return 0;
  return std::min(std::size_t(std::lround(fraction * double(examples))), examples - 1);
}

std::vector<bool> held_out(std::string_view client, std::size_t examples, double fraction) {
  std::vector<bool> out(examples, false);
  Stream stream = split_stream(client);
  for (const std::size_t i :
       sample_without_replacement(stream, examples, held_out_count(examples, fraction))) {
    out[i] = true;
  }
  return out;
}

std::vector<std::uint32_t> numbered_groups(std::span<const std::string> groups) {
  std::vector<std::uint32_t> numbers;
  std::map<std::string_view, std::uint32_t> place;
  std::uint32_t next = 0;
  for (const std::string& group : groups) {
    if (group.empty()) {
      numbers.push_back(next++);
      continue;
    }
    const auto [at, is_new] = place.try_emplace(group, next);
    if (is_new) ++next;
    numbers.push_back(at->second);
  }
  return numbers;
}

std::vector<bool> held_out(std::string_view client, std::span<const std::uint32_t> groups,
                           double fraction) {
  std::vector<std::vector<std::size_t>> members;  // in order of first appearance
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [at, is_new] = place.try_emplace(groups[i], members.size());
    if (is_new) members.emplace_back();
    members[at->second].push_back(i);
  }
  std::vector<bool> out(groups.size(), false);
  std::size_t left = held_out_count(groups.size(), fraction);
  Stream stream = split_stream(client);
  for (const std::uint32_t group : permutation(stream, members.size())) {
    if (members[group].size() > left) continue;
    left -= members[group].size();
    for (const std::size_t i : members[group]) out[i] = true;
  }
  return out;
}

}  // namespace fedep
