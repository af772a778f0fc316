#include "fedep/data/table/screen/column_summary.h"

#include <algorithm>
#include <cmath>

namespace fedep {
namespace {

constexpr std::array<double, 5> kNormalQuantiles = {-1.2816, -0.6745, 0, 0.6745, 1.2816};

// Between the values around place part·(n - 1) of the sorted ones.
double quantile_of_sorted(std::span<const double> sorted, double part) {
  const double place = part * double(sorted.size() - 1);
  const auto below = std::size_t(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

bool ColumnSummary::has_two_values() const {
  constexpr double kRounding = 1e-9;
  const double width = most - least;
  return width > 0 && std::fabs(deviation * deviation - (most - mean) * (mean - least)) <=
                          kRounding * width * width;
}

std::array<double, 5> ColumnSummary::spread_out() const {
  if (has_quantiles) return quantiles;
  std::array<double, 5> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::clamp(mean + deviation * kNormalQuantiles[i], least, most);
  }
  return out;
}

ColumnSummary summary_of(std::span<double> values) {
  ColumnSummary out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  out.count = double(values.size());
  out.least = values.front();
  out.most = values.back();
  for (const double value : values) out.mean += value / out.count;
  double variance = 0;
  for (const double value : values) variance += (value - out.mean) * (value - out.mean) / out.count;
  out.deviation = std::min(std::sqrt(variance), out.most / 2 - out.least / 2);  // never infinite
  out.has_quantiles = values.size() >= kRowsForQuantiles;
  if (!out.has_quantiles) return out;
  for (std::size_t i = 0; i < kSummaryParts.size(); ++i) {
    out.quantiles[i] = quantile_of_sorted(values, kSummaryParts[i]);
  }
  return out;
}

}  // namespace fedep
