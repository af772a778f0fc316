// Numbers for tests of cohort models, and how far those they find are from those expected.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/random/stream.h"

namespace fedep {

inline std::vector<float> normals(std::size_t size, std::uint32_t step, float scale) {
  std::vector<float> values(size);
  fill_normal({.seed = 7, .step = step}, values);
  for (float& x : values) x *= scale;
  return values;
}

inline double relative_error(std::span<const float> a, std::span<const float> b) {
  double gap = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    gap += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return norm > 0 ? std::sqrt(gap / norm) : std::sqrt(gap);
}

}  // namespace fedep
