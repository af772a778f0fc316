// How well counts were predicted: Poisson deviance and negative log likelihood, and whether errors are as
// large as was predicted.
//
//   CountMetrics metrics;
//   metrics.add(rates, {}, batch.reals);       // Poisson with these means
//   metrics.add(rates, spread, batch.reals);   // means that are uncertain themselves, with these variances
//
// A Poisson mean that is uncertain is taken for a Gamma of that mean and variance: the count is then
// negative binomial.
#pragma once

#include <cstdint>
#include <span>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

class CountMetrics {
 public:
  // Counts are whole, zero or more; means are positive. An empty spread is one of zeros.
  void add(std::span<const double> means, std::span<const double> spread,
           std::span<const float> counts);
  void merge(const CountMetrics& other);
  void parts(Parts& parts);

  std::int64_t count() const { return count_; }
  double rmse() const;
  double nll() const;  // in nats
  // Mean of 2 (y log(y / mean) - y + mean): 0 where every mean is the count, about 1 where counts are
  // Poisson and means are theirs and not small.
  double deviance() const;
  // Root of Σ (y - mean)² / Σ (mean + spread): 1 where predictions are as sure as they may be. Not the mean of
  // ratios: of time to event, where an event ends its own exposure, that has no expectation.
  double error_ratio() const;

 private:
  std::int64_t count_ = 0;
  ExactSum squares_, nll_, deviance_, variances_;
};

// log of the probability of a count whose Poisson mean has this mean and variance.
double log_count_probability(double count, double mean, double spread);
// Entropy of such a count, in nats.
double count_entropy(double mean, double spread);
// The smallest count that is exceeded with a probability of at most 1 - part; NaN without a mean.
double count_quantile(double part, double mean, double spread);

}  // namespace fedep
