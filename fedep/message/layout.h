// How a flat vector of weights falls into named tensors: the order of the list is the order in the
// vector. Checkpoints name tensors by it. And parts of that vector, by where they begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fedep {

struct TensorShape {
  std::string name;
  std::vector<std::int64_t> shape;

  std::size_t size() const {
    std::size_t n = 1;
    for (const std::int64_t extent : shape) n *= std::size_t(extent);
    return n;
  }
  bool operator==(const TensorShape&) const = default;
};

using Layout = std::vector<TensorShape>;

inline std::size_t size_of(const Layout& layout) {
  std::size_t n = 0;
  for (const TensorShape& tensor : layout) n += tensor.size();
  return n;
}

// Coordinates [begin, end) of the flat vector.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const Range&) const = default;
};

// Coordinates of [0, size) that are in none of the ranges, which ascend and are disjoint.
inline std::vector<Range> complement(const std::vector<Range>& ranges, std::size_t size) {
  std::vector<Range> gaps;
  std::size_t begin = 0;
  for (const Range& range : ranges) {
    if (range.begin > begin) gaps.push_back({begin, range.begin});
    begin = range.end;
  }
  if (begin < size) gaps.push_back({begin, size});
  return gaps;
}

}  // namespace fedep
