// log Γ(x) for threads: std::lgamma also writes a sign that all of them share.
#pragma once

#include <math.h>  // lgamma_r, which <cmath> need not have

namespace fedep {

// x > 0.
inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// log y!
inline double log_factorial(double y) { return log_gamma(y + 1); }

}  // namespace fedep
