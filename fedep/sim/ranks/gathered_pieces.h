// Where each rank's bytes lie in what all of them say together, in the ints that MPI counts with.
//
//   const GatheredPieces pieces = gathered_pieces(sizes);   // by rank
//   MPI_Allgatherv(…, pieces.sizes.data(), pieces.begins.data(), …);
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

struct GatheredPieces {
  std::vector<int> sizes, begins;
  std::size_t total = 0;
};

// Throws RunError for more than an int can count, whichever rank says it.
inline GatheredPieces gathered_pieces(std::span<const std::uint64_t> sizes) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  GatheredPieces pieces;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    if (sizes[rank] > kMost - pieces.total) {
      throw RunError(
          fmt::format("ranks: together they must say less than 2 GiB, but rank {} has {} bytes "
                      "after {} of others",
                      rank, sizes[rank], pieces.total));
    }
    pieces.sizes.push_back(int(sizes[rank]));
    pieces.begins.push_back(int(pieces.total));
    pieces.total += sizes[rank];
  }
  return pieces;
}

}  // namespace fedep
