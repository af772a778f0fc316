#include "fedep/metric/counts.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "fedep/message/check.h"
#include "fedep/message/log_gamma.h"
#include "fedep/metric/parts.h"

namespace fedep {

void CountMetrics::add(std::span<const double> means, std::span<const double> spread,
                       std::span<const float> counts) {
  check_same_size("CountMetrics::add", "means", counts.size(), means.size());
  if (!spread.empty()) check_same_size("CountMetrics::add", "spread", counts.size(), spread.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double y = double(counts[i]), mean = means[i], extra = spread.empty() ? 0 : spread[i];
    const double square = (y - mean) * (y - mean);
    ++count_;
    squares_.add(square);
    nll_.add(-log_count_probability(y, mean, extra));
    deviance_.add(2 * ((y > 0 ? y * std::log(y / mean) : 0.0) - y + mean));
    variances_.add(mean + extra);
  }
}

void CountMetrics::merge(const CountMetrics& other) {
  count_ += other.count_;
  squares_.add(other.squares_);
  nll_.add(other.nll_);
  deviance_.add(other.deviance_);
  variances_.add(other.variances_);
}

void CountMetrics::parts(Parts& parts) {
  parts.count(count_);
  parts.sum(squares_);
  parts.sum(nll_);
  parts.sum(deviance_);
  parts.sum(variances_);
}

double CountMetrics::rmse() const { return std::sqrt(squares_.value() / double(count_)); }
double CountMetrics::nll() const { return nll_.value() / double(count_); }
double CountMetrics::deviance() const { return deviance_.value() / double(count_); }
double CountMetrics::error_ratio() const {
  return std::sqrt(squares_.value() / variances_.value());
}

double log_count_probability(double count, double mean, double spread) {
  const double poisson = (count > 0 ? count * std::log(mean) : 0.0) - mean - log_factorial(count);
  // So little spread changes less than the differences of large logarithms below would lose.
  if (!(spread > 1e-9 * mean * mean)) return poisson;
  const double shape = mean * mean / spread;
  return log_gamma(count + shape) - log_gamma(shape) - log_factorial(count) -
         shape * std::log1p(mean / shape) +
         (count > 0 ? count * std::log(mean / (shape + mean)) : 0.0);
}

double count_entropy(double mean, double spread) {
  if (!(mean > 0)) return mean == 0 ? 0 : NAN;
  const double variance = mean + spread;
  // So many counts are nearly normal: off by 1 / (12 variance).
  if (!(variance <= 300)) return 0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance);
  double entropy = 0, left = 1;
  for (double count = 0; left > 1e-12 && count < 1e5; ++count) {
    const double log_p = log_count_probability(count, mean, spread), p = std::exp(log_p);
    if (p > 0) entropy -= p * log_p;
    left -= p;
  }
  return entropy;
}

double count_quantile(double part, double mean, double spread) {
  if (!(mean >= 0) || !std::isfinite(mean + spread)) return NAN;
  if (mean == 0) return 0;
  // Added up from where hardly anything lies below. Where counts are many, several at a time are alike.
  const double deviation = std::sqrt(mean + spread),
               stride = std::max(1.0, std::floor(1e-4 * deviation));
  double count = std::max(0.0, std::floor(mean - 10 * deviation)), below = 0;
  const double end = mean + 1e3 * deviation;  // of what rounding might leave
  for (;; count += stride) {
    below += stride * std::exp(log_count_probability(count + (stride - 1) / 2, mean, spread));
    if (below >= part || count > end) return count + stride - 1;
  }
}

}  // namespace fedep
