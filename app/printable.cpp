#include "app/printable.h"

#include <cstdint>

#include <fmt/format.h>

namespace fedep {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: what is there is not UTF-8
};

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return std::uint32_t(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    return {};
  return {value, bytes};
}

bool is_control(std::uint32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

bool turns_direction(std::uint32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::string_view text, bool keep_lines) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    const bool stays = keep_lines && (c.value == '\n' || c.value == '\t');
    if (!stays && is_control(c.value)) {
      out += fmt::format("\\x{:02x}", c.value);
    } else if (turns_direction(c.value)) {
      out += fmt::format("\\u{:04x}", c.value);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

}  // namespace fedep
