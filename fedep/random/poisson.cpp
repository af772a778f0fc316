#include "fedep/random/poisson.h"

#include <algorithm>
#include <cmath>

namespace fedep {
namespace {

// Of a mean so small that e^-mean is no rounding: the distribution function is inverted.
double draw_small(Stream& stream, double mean) {
  double left = stream.uniform(), mass = std::exp(-mean), count = 0;
  while (left > mass && count < 1000) {
    left -= mass;
    mass *= mean / ++count;
  }
  return count;
}

}  // namespace

double draw_poisson(Stream& stream, double mean) {
  constexpr double kSmall = 30, kExact = 1e4;
  if (!(mean <= kExact)) {
    return std::max(0.0, std::round(mean + std::sqrt(mean) * stream.normal()));
  }
  double count = 0;
  for (; mean > kSmall; mean -= kSmall) count += draw_small(stream, kSmall);  // counts add up
  return count + draw_small(stream, mean);
}

}  // namespace fedep
