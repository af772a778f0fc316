#include "fedep/page/figure/text_lines.h"

#include <cstdint>

namespace fedep {
namespace {

constexpr std::string_view kEllipsis = "…";

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character that begins the text.
std::size_t first_length(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && continues(text[n])) ++n;
  return n;
}

std::uint32_t code_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  std::uint32_t code = lead < 0x80   ? lead
                       : lead < 0xE0 ? lead & 0x1F
                       : lead < 0xF0 ? lead & 0x0F
                                     : lead & 0x07;
  for (const char c : character.substr(1))
    code = (code << 6) | (static_cast<unsigned char>(c) & 0x3F);
  return code;
}

// Of a letter's size: a sans serif's, and a little.
double relative_width(std::uint32_t code) {
  constexpr std::string_view kNarrow = " .,:;'|!()[]ijlftrI-";
  constexpr std::string_view kWide = "mwMW@%";
  if (code < 0x80) {
    const char c = char(code);
    if (kNarrow.find(c) != std::string_view::npos) return 0.38;
    if (kWide.find(c) != std::string_view::npos) return 0.92;
    return c >= 'A' && c <= 'Z' ? 0.72 : 0.6;
  }
  if (code >= 0x300 && code < 0x370) return 0;  // accents over the letter before
  return code >= 0x1100 && (code < 0x1E00 || code >= 0x2E80) ? 1.05 : 0.68;
}

// How many bytes of whole characters fit; at least one character.
std::size_t fitting(std::string_view text, double size, double width) {
  double used = 0;
  std::size_t n = 0;
  while (n < text.size()) {
    const std::size_t length = first_length(text.substr(n));
    used += size * relative_width(code_of(text.substr(n, length)));
    if (used > width && n > 0) break;
    n += length;
  }
  return n;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double out = 0;
  while (!text.empty()) {
    const std::size_t length = first_length(text);
    out += size * relative_width(code_of(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

std::vector<std::string> text_lines(std::string_view text, double size, double width,
                                    std::size_t most) {
  std::vector<std::string> out;
  while (out.size() + 1 < most) {
    std::size_t n = fitting(text, size, width);
    if (n >= text.size()) break;
    // Back to the last space, unless that leaves less than half a line.
    const std::size_t space = text.substr(0, n + 1).rfind(' ');
    if (space != std::string_view::npos && 2 * space >= n) n = space;
    out.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (fitting(text, size, width) >= text.size()) {
    out.emplace_back(text);
  } else {
    const double left = width - text_width(kEllipsis, size);
    out.push_back(std::string(text.substr(0, fitting(text, size, left))) + std::string(kEllipsis));
  }
  return out;
}

}  // namespace fedep
