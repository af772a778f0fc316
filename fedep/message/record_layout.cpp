#include "fedep/message/record_layout.h"

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fedep::record_layout {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");
static_assert(sizeof(float) == 4 && sizeof(double) == 8);

bool allowed_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::uint64_t chained(Bytes bytes, std::uint64_t previous) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), previous);
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kRecordMaxName &&
         std::all_of(name.begin(), name.end(), allowed_in_name);
}

void refuse_name(std::size_t number, std::string_view name) {
  refuse("name of section {} must be 1 to {} characters of [a-z0-9_.], but is '{}'", number,
         kRecordMaxName, shown(name));
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 2 * kRecordMaxName)) {
    out += c > ' ' && c <= '~' ? std::string(1, c)
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace fedep::record_layout
