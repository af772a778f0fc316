// Root mean squared error and Gaussian negative log likelihood of predicted numbers.
//
//   RegressionMetrics metrics;
//   metrics.add(predictions, batch.reals);       // unit noise
//   metrics.add(means, variances, batch.reals);  // or a predictive distribution N(mean, variance)
#pragma once

#include <cstdint>
#include <span>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class RegressionMetrics {
 public:
  void add(std::span<const double> means, std::span<const float> targets);
  void add(std::span<const double> means, std::span<const double> variances,
           std::span<const float> targets);
  void merge(const RegressionMetrics& other);

  std::int64_t count() const { return count_; }
  double rmse() const;
  double nll() const;  // mean of ½ log(2π v) + (target − mean)² / (2 v), in nats; may be negative

 private:
  void add_one(double mean, double variance, double target);

  std::int64_t count_ = 0;
  ExactSum squares_;
  ExactSum nll_;
};

}  // namespace fedep
