#include "fedep/data/table/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

// Bytes that a character of UTF-8 has from here on; 0 if there is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  std::uint32_t code = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : size;
}

// Whether the text may go on so that its first character is one.
bool may_be_cut_off(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  return text.size() < kLongest && static_cast<unsigned char>(text[0]) >= 0xC2 &&
         std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80; });
}

// Bytes at the front that are ASCII, eight at a time.
std::size_t ascii_bytes(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return at;
}

}  // namespace

std::size_t good_characters(std::string_view text, bool is_last, std::size_t& line,
                            const std::string& source) {
  std::size_t at = 0;
  const auto go_on = [&](std::size_t bytes) {
    const auto begin = text.begin() + std::ptrdiff_t(at);
    line += std::size_t(std::count(begin, begin + std::ptrdiff_t(bytes), '\n'));
    at += bytes;
  };
  while (at < text.size()) {
    go_on(ascii_bytes(text.substr(at)));
    if (at == text.size()) break;
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) {
      if (!is_last && may_be_cut_off(text.substr(at))) return at;
      throw InputError(fmt::format(
          "{}:{}: text must be UTF-8, but has byte {:#04x} here; `iconv -f latin1 -t utf8` turns "
          "Latin-1 into it",
          source, line, static_cast<unsigned char>(text[at])));
    }
    go_on(size);
  }
  return at;
}

}  // namespace fedep
