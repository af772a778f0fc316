#include "fedep/metric/normal_interval.h"

#include <cmath>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {

double deviations_of(double level) {
  if (!(level > 0) || !(level < 1)) {
    fail("interval", "level", "between 0 and 1", fmt::format("{}", level));
  }
  // erfc(z / √2) = 1 - level, whose left side falls from 1 to less than any double's distance from 1.
  double low = 0, high = 10;
  for (int halved = 0; halved < 100; ++halved) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > 1 - level ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace fedep
