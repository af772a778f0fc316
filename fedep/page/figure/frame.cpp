#include "fedep/page/figure/frame.h"

#include <cmath>

#include <fmt/format.h>

namespace fedep {

double tick_spacing(double size, int count) {
  const double raw = size / count;
  const double base = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * base >= raw) return factor * base;
  }
  return 10 * base;
}

std::vector<double> ticks(const AxisRange& range, double spacing) {
  constexpr double kMost = 1000;
  constexpr double kCountable = 1e15;  // up to here, one more is another number
  const double first = std::ceil(range.low / spacing), last = std::floor(range.high / spacing);
  std::vector<double> out;
  if (!(std::max(std::abs(first), std::abs(last)) < kCountable) || last - first > kMost) return out;
  for (double i = first; i <= last; ++i) out.push_back(i * spacing);
  return out;
}

std::string tick_label(double value) {
  return value < 0 ? fmt::format("−{:.6g}", -value) : fmt::format("{:.6g}", value + 0.0);
}

}  // namespace fedep
