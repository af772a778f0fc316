#include "fedep/metric/curve.h"

#include <cmath>
#include <limits>

#include "fedep/message/check.h"
#include "fedep/metric/exact_sum.h"

namespace fedep {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::vector<double> running_mean(std::span<const double> curve, std::size_t window) {
  check_positive("running_mean", "window", static_cast<double>(window));
  std::vector<double> means(curve.size(), kNan);
  for (std::size_t end = window; end <= curve.size(); ++end) {
    ExactSum sum;  // anew for every window: nothing drifts, and one NaN leaves with its window
    for (const double value : curve.subspan(end - window, window)) sum.add(value);
    means[end - 1] = sum.value() / static_cast<double>(window);
  }
  return means;
}

std::optional<std::int64_t> rounds_to_threshold(std::span<const double> curve, double threshold,
                                                std::size_t window) {
  const std::vector<double> means = running_mean(curve, window);
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (means[i] >= threshold) return static_cast<std::int64_t>(i) + 1;
  }
  return std::nullopt;
}

double best_by_round(std::span<const double> curve, std::int64_t rounds, std::size_t window) {
  check_positive("best_by_round", "rounds", static_cast<double>(rounds));
  const auto until = static_cast<std::size_t>(rounds);
  if (until > curve.size()) return kNan;
  double best = kNan;
  for (const double mean : running_mean(curve.first(until), window)) {
    if (std::isnan(best) || mean > best) best = mean;
  }
  return best;
}

}  // namespace fedep
