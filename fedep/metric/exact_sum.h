// A sum of doubles as if computed without rounding, then rounded once (J. R. Shewchuk, 1997,
// "Adaptive precision floating-point arithmetic"). Its value depends neither on the order of the
// terms nor on how they were split into chunks or threads, so neither does any metric below.
//
//   ExactSum nll;
//   for (const double p : probabilities) nll.add(negative_log(p));
//   nll.add(other_worker);
//   nll.value() / count
#pragma once

#include <vector>

namespace fedep {

class ExactSum {
 public:
  void add(double term);  // infinities and NaN add up as double's do, and so does an overflow
  void add(const ExactSum& other);

  double value() const;
  // Numbers whose exact sum it is.
  std::vector<double> terms() const;

 private:
  // Their exact sum is the sum so far. Ascending in magnitude and without a common bit, so one to
  // three of them in practice.
  std::vector<double> parts_;
  double not_finite_ = 0;  // sum of all terms that are not finite
};

}  // namespace fedep
