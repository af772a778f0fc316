#include "app/text_table.h"

#include <algorithm>

namespace fedep {
namespace {

std::string spaces(std::size_t width, std::string_view text) {
  return std::string(width - std::min(width, screen_width(text)), ' ');
}

}  // namespace

std::size_t screen_width(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) {
    const auto c = static_cast<unsigned char>(byte);
    if ((c & 0xC0) != 0x80) width += c >= 0xE3 && c <= 0xED ? 2 : 1;
  }
  return width;
}

std::string text_table(const TextLines& lines, std::size_t most) {
  constexpr std::string_view kGap = "  ";
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], screen_width(line[c]));
    }
  }
  const std::size_t first = widths.empty() ? 0 : widths[0];
  most = std::max(most, first + most / 2);
  std::string out;
  std::size_t begin = 1;
  do {
    std::size_t end = begin, width = first;
    while (end < widths.size()) {
      width += kGap.size() + widths[end];
      if (width > most && end > begin) break;
      ++end;
    }
    if (!out.empty()) out += '\n';
    for (const auto& line : lines) {
      out += line[0];
      if (end > begin) out += spaces(first, line[0]);
      for (std::size_t c = begin; c < end; ++c) {
        out += kGap;
        out += spaces(widths[c], line[c]) + line[c];
      }
      out += '\n';
    }
    begin = end;
  } while (begin < widths.size());
  return out;
}

}  // namespace fedep
