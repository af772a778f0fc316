#include "fedep/metric/exact_sum.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace fedep {

namespace {

struct TwoSum {
  double high;  // a + b, rounded
  double low;   // what rounding took: high + low = a + b exactly
};

TwoSum two_sum(double a, double b) {
  if (std::abs(a) < std::abs(b)) std::swap(a, b);
  const double high = a + b;
  return {high, b - (high - a)};
}

}  // namespace

void ExactSum::add(double term) {
  if (!std::isfinite(term)) {
    not_finite_ += term;
    return;
  }
  std::size_t kept = 0;
  for (const double part : parts_) {  // writes at `kept`, never ahead of what was read
    const auto [high, low] = two_sum(term, part);
    if (low != 0) parts_[kept++] = low;
    term = high;
  }
  parts_.resize(kept);
  if (!std::isfinite(term)) {
    parts_.clear();
    not_finite_ += term;
  } else if (term != 0) {
    parts_.push_back(term);
  }
}

void ExactSum::add(const ExactSum& other) {
  const std::vector<double> parts = other.parts_;  // a copy: `other` may be this sum itself
  not_finite_ += other.not_finite_;
  for (const double part : parts) add(part);
}

std::vector<double> ExactSum::terms() const {
  std::vector<double> terms = parts_;
  if (not_finite_ != 0) terms.push_back(not_finite_);
  return terms;
}

double ExactSum::value() const {
  if (not_finite_ != 0) return not_finite_;
  std::size_t left = parts_.size();
  double high = 0;
  double low = 0;
  while (left > 0 && low == 0) {
    const TwoSum sum = two_sum(high, parts_[--left]);
    high = sum.high;
    low = sum.low;
  }
  // If `low` is exactly half a unit of `high`, ties went to even; a part below of the same sign
  // says that it was no tie but more than half.
  if (left > 0 && low != 0 && std::signbit(low) == std::signbit(parts_[left - 1])) {
    const double up = high + 2 * low;
    if (up - high == 2 * low) high = up;
  }
  return high;
}

}  // namespace fedep
