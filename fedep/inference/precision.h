// Steps that the covariance estimates share.
#pragma once

#include <cmath>

#include "fedep/message/gaussian.h"

namespace fedep {

// Every entry clipped to mean ± width·std over all coordinates (population std), as the reference
// does; width 0 leaves all as it is.
template <Storage V>
V clip_to_spread(V x, double width) {
  if (width <= 0) return x;
  const double d = double(x.size());
  const double average = sum(x) / d;
  const double spread = std::sqrt(std::max(0.0, dot(x, x) / d - average * average));
  using Scalar = typename V::Scalar;
  return clamp(x, Scalar(average - width * spread), Scalar(average + width * spread));
}

template <Storage V>
double norm(const V& x) {
  return std::sqrt(dot(x, x));
}

}  // namespace fedep
