#include "fedep/store/log/log_mark.h"

#include <algorithm>
#include <string>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace fedep {
namespace {

LogMark hash(std::string_view text, LogMark seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

// The text of a field with its name; nothing if there is none. What a string holds cannot be taken
// for it, since quotes have a backslash there.
std::string_view field_in(std::string_view line, std::string_view name) {
  const std::size_t begin = line.find(name);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_first_of(",}", begin + name.size()) - begin);
}

}  // namespace

LogMark mark_of(const RunHeader& header) {
  return hash(fmt::format("{} {} {}", header.seed, header.clients, header.data), 0);
}

// A line says who answered and how, then its seconds, then train_loss, then scores (log_lines.cpp).
LogMark mark_after(LogMark before, std::string_view round_line) {
  const std::size_t played = std::min(round_line.find(",\"seconds\":"), round_line.size());
  return hash(field_in(round_line, ",\"train_loss\":"), hash(round_line.substr(0, played), before));
}

}  // namespace fedep
