// What the writer and the reader of records (record.h) share: sizes of the layout's parts, the
// chain of checksums, and what is refused on both sides. Every refusal is an InputError that starts
// with "record: ".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "fedep/message/array.h"
#include "fedep/message/error.h"
#include "fedep/message/record.h"

namespace fedep::record_layout {

using Bytes = std::span<const std::byte>;

inline constexpr std::string_view kMagic = "FEDEPREC";
inline constexpr std::size_t kChecksumSize = 8;
inline constexpr std::size_t kPreambleSize = 16 + kChecksumSize;
inline constexpr std::size_t kSectionSize = kRecordMaxName + 16 + kChecksumSize;
inline constexpr std::size_t kTypeCount = std::variant_size_v<Array>;
inline constexpr std::array<std::size_t, kTypeCount> kTypeSizes = {1, 4, 8, 4, 8};
static_assert(kRecordChunkBytes % 8 == 0, "no element may span two chunks");

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError("record: " + fmt::format(text, std::forward<Args>(args)...));
}

// The checksum of bytes that follow those of checksum `previous`.
std::uint64_t chained(Bytes bytes, std::uint64_t previous);

bool is_name(std::string_view name);
[[noreturn]] void refuse_name(std::size_t number, std::string_view name);

// Any bytes, made fit to be shown in one line.
std::string shown(std::string_view text);

// Of values that lie at `offset` in their section.
template <class T>
void check_finite_values(std::string_view name, std::span<const T> values, std::size_t offset) {
  const std::size_t i = first_not_finite(values);
  if (i == values.size()) return;
  refuse("element {} of section {} must be finite, but is {}", offset + i, name, values[i]);
}

}  // namespace fedep::record_layout
