// JSON whose objects keep the order in which their fields were written, as files and pages show them.
#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

namespace fedep {

using Json = nlohmann::ordered_json;

// What does not exist is null, never NaN.
inline Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace fedep
