#include "fedep/page/figure/effect_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fedep {
namespace {

constexpr int kMostDecimals = 6;
constexpr double kLargest = 1e5;  // from here on an exponent reads better

// So that a number of this size has this many significant digits.
int decimals_of(double size, int digits) {
  if (!(size > 0) || !std::isfinite(size)) return 0;
  return digits - 1 - int(std::floor(std::log10(size)));
}

std::string text_of(double value, int decimals, EffectScale scale) {
  decimals = std::min(decimals, kMostDecimals);
  const std::string plain = fmt::format("{:.{}f}", value, decimals);
  const bool reads_zero = plain.find_first_of("123456789") == std::string::npos;
  const bool is_lost =
      reads_zero && value != 0 && (scale == EffectScale::ratio || decimals == kMostDecimals);
  if (!(std::abs(value) < kLargest) || is_lost) return fmt::format("{:.3g}", value);
  return reads_zero ? fmt::format("{:.{}f}", 0.0, decimals) : plain;  // never -0.00
}

}  // namespace

EffectText effect_text(double estimate, const std::optional<Bounds>& interval, EffectScale scale) {
  const int wanted = interval ? decimals_of((interval->second - interval->first) / 2, 2)
                              : decimals_of(std::abs(estimate), 3);
  const int decimals = std::max(wanted, scale == EffectScale::ratio ? 2 : 0);
  EffectText out{text_of(estimate, decimals, scale)};
  if (!interval) return out;
  out.low = text_of(interval->first, decimals, scale);
  out.high = text_of(interval->second, decimals, scale);
  return out;
}

}  // namespace fedep
