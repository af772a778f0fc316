// Root mean squared error and Gaussian negative log likelihood of predicted numbers, and whether
// errors are as large as was predicted.
//
//   RegressionMetrics metrics;
//   metrics.add(predictions, batch.reals);       // unit noise
//   metrics.add(means, variances, batch.reals);  // or a predictive distribution N(mean, variance)
#pragma once

#include <cstdint>
#include <span>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

class RegressionMetrics {
 public:
  void add(std::span<const double> means, std::span<const float> targets);
  void add(std::span<const double> means, std::span<const double> variances,
           std::span<const float> targets);
  void merge(const RegressionMetrics& other);
  void parts(Parts& parts);

  std::int64_t count() const { return count_; }
  double rmse() const;
  double nll() const;  // mean of ½ log(2π v) + (target − mean)² / (2 v), in nats; may be negative
  // Root mean of (target − mean)² / v: 1 where predictions are as sure as they may be, 2 where their
  // deviations are half of what they should be.
  double error_ratio() const;

 private:
  void add_one(double mean, double variance, double target);

  std::int64_t count_ = 0;
  ExactSum squares_;
  ExactSum nll_;
  ExactSum ratios_;
};

}  // namespace fedep
