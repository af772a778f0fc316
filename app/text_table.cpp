#include "app/text_table.h"

#include <algorithm>
#include <string_view>

namespace fedep {
namespace {

// Columns that a text takes on a terminal: characters, not bytes.
std::size_t width_of(std::string_view text) {
  return std::size_t(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string spaces(std::size_t width, std::string_view text) {
  return std::string(width - std::min(width, width_of(text)), ' ');
}

}  // namespace

std::string text_table(const TextLines& lines, std::size_t most) {
  constexpr std::string_view kGap = "  ";
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], width_of(line[c]));
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
