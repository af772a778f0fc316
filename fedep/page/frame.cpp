#include "fedep/page/frame.h"

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
  std::vector<double> out;
  for (double i = std::ceil(range.low / spacing); i * spacing <= range.high; ++i) {
    out.push_back(i * spacing);
  }
  return out;
}

std::string tick_label(double value) {
  return value < 0 ? fmt::format("−{:.6g}", -value) : fmt::format("{:.6g}", value + 0.0);
}

}  // namespace fedep
