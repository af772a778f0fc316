// Argument checks. Each throws InputError with the same form of message:
//
//   check_positive("dense_from_moments", "variance", -2.0);
//   -> dense_from_moments: variance must be positive, but is -2
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

[[noreturn]] inline void fail(std::string_view function, std::string_view thing,
                              std::string_view expected, std::string_view came) {
  throw InputError(fmt::format("{}: {} must be {}, but is {}", function, thing, expected, came));
}

inline void check_finite(std::string_view function, std::string_view name, double value) {
  if (!std::isfinite(value)) fail(function, name, "finite", fmt::format("{}", value));
}

inline void check_positive(std::string_view function, std::string_view name, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    fail(function, name, "positive", fmt::format("{}", value));
  }
}

inline void check_not_negative(std::string_view function, std::string_view name, double value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    fail(function, name, "zero or positive", fmt::format("{}", value));
  }
}

inline void check_in(std::string_view function, std::string_view name, double value, double low,
                     double high) {
  if (!(value >= low && value <= high)) {
    fail(function, name, fmt::format("in [{}, {}]", low, high), fmt::format("{}", value));
  }
}

inline void check_same_size(std::string_view function, std::string_view name, std::size_t expected,
                            std::size_t came) {
  if (expected != came) {
    fail(function, name, fmt::format("of {} elements", expected), fmt::format("of {}", came));
  }
}

}  // namespace fedep
