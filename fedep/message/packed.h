// A symmetric matrix as messages carry it: its lower triangle, row by row,
//
//   (0,0)  (1,0) (1,1)  (2,0) (2,1) (2,2)  …
//
// Sums, differences and multiples of such matrices are those of their elements, so the arithmetic of
// messages needs nothing else. What needs the matrix as a matrix is in full_precision.h.
#pragma once

#include <cstddef>

#include "fedep/message/storage.h"

namespace fedep {

constexpr std::size_t packed_size(std::size_t dimension) { return dimension * (dimension + 1) / 2; }
// Of an element with row >= column.
constexpr std::size_t packed_index(std::size_t row, std::size_t column) {
  return row * (row + 1) / 2 + column;
}

template <class V>
struct Packed {
  V elements;

  bool operator==(const Packed&) const = default;
};

}  // namespace fedep
