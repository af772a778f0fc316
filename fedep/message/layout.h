// How a flat vector of weights falls into named tensors: the order of the list is the order in the
// vector. Checkpoints name tensors by it.
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

}  // namespace fedep
