// Who plays which of a round's clients. Every rank computes the same answer by itself.
//
//   const std::vector<std::size_t> ranks = share_out(visits, {.ranks = 4, .threads = 2});
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fedep {

struct VisitLoad {
  std::int64_t cost = 1;            // in minibatch steps, what a visit costs without them included
  std::optional<std::size_t> home;  // the rank that has the client's factor
};

struct Workforce {
  std::size_t ranks = 1;
  std::size_t threads = 1;  // of every rank
};

// The rank of every visit: the longest first, each to whoever has least to do, and then such changes as
// help whoever has most. Where a client's factor is weighs as little work more does.
std::vector<std::size_t> share_out(std::span<const VisitLoad> visits, const Workforce& workforce);

// Indices, the longest first; of two alike the one that comes first.
std::vector<std::size_t> longest_first(std::span<const VisitLoad> visits);

}  // namespace fedep
