#include "fedep/metric/regression.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"

namespace fedep {

void RegressionMetrics::add(std::span<const double> means, std::span<const float> targets) {
  check_same_size("RegressionMetrics::add", "means", targets.size(), means.size());
  for (std::size_t i = 0; i < targets.size(); ++i) add_one(means[i], 1.0, targets[i]);
}

void RegressionMetrics::add(std::span<const double> means, std::span<const double> variances,
                            std::span<const float> targets) {
  check_same_size("RegressionMetrics::add", "means", targets.size(), means.size());
  check_same_size("RegressionMetrics::add", "variances", targets.size(), variances.size());
  for (const double variance : variances) {
    if (!std::isnan(variance)) check_positive("RegressionMetrics::add", "variance", variance);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) add_one(means[i], variances[i], targets[i]);
}

void RegressionMetrics::add_one(double mean, double variance, double target) {
  const double square = (target - mean) * (target - mean);
  ++count_;
  squares_.add(square);
  nll_.add(0.5 * std::log(2 * std::numbers::pi * variance) + square / (2 * variance));
  ratios_.add(square / variance);
}

void RegressionMetrics::merge(const RegressionMetrics& other) {
  count_ += other.count_;
  squares_.add(other.squares_);
  nll_.add(other.nll_);
  ratios_.add(other.ratios_);
}

void RegressionMetrics::parts(Parts& parts) {
  parts.count(count_);
  parts.sum(squares_);
  parts.sum(nll_);
  parts.sum(ratios_);
}

double RegressionMetrics::rmse() const {
  return std::sqrt(squares_.value() / static_cast<double>(count_));
}

double RegressionMetrics::nll() const { return nll_.value() / static_cast<double>(count_); }

double RegressionMetrics::error_ratio() const {
  return std::sqrt(ratios_.value() / static_cast<double>(count_));
}

}  // namespace fedep
