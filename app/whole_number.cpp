#include "app/whole_number.h"

#include <charconv>

#include <fmt/format.h>

#include "fedep/message/nearest.h"

namespace fedep {

OptionCheck whole_number(std::uint64_t least, std::uint64_t most) {
  return [=](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, failure] = std::from_chars(text.data(), end, value);
    if (failure == std::errc() && stopped == end && value >= least && value <= most) return "";
    return fmt::format("must be a whole number from {} to {}, but is {}", least, most, shown(text));
  };
}

OptionCheck interval_level() {
  return [](const std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, failure] = std::from_chars(text.data(), end, value);
    if (failure == std::errc() && stopped == end && value >= 0.01 && value <= 0.999) return "";
    return fmt::format("must be a level from 0.01 to 0.999, but is {}", shown(text));
  };
}

}  // namespace fedep
