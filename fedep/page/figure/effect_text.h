// How an effect and its interval are written, in a table and beside a forest plot alike: with the digits
// that the interval's width leaves, so that 1.0023 (1.0003 to 1.0043) does not read 1.00 (1.00 to 1.00).
//
//   const EffectText text = effect_text(1.0023, {{1.0003, 1.0043}}, EffectScale::ratio);
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace fedep {

enum class EffectScale {
  difference,  // no effect is 0
  ratio,       // no effect is 1, and nothing is 0
};

struct EffectText {
  std::string estimate;
  std::string low = {};  // empty without an interval
  std::string high = {};

  bool operator==(const EffectText&) const = default;
};

using Bounds = std::pair<double, double>;  // low, high

// All three have the same decimals: two significant digits of half the interval's width, three of an estimate without
// one, and two decimals at least of a ratio. What is too large or too small for six decimals has an exponent.
EffectText effect_text(double estimate, const std::optional<Bounds>& interval, EffectScale scale);

}  // namespace fedep
