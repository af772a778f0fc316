// The header of a safetensors file (safetensors.h): its JSON text, what that says about each
// tensor, and the checks that need no tensor's bytes. `file` is what errors call the file; all are
// InputError.
//
//   const Header header = parse_header(file, text);
//   for (const std::size_t i : checked_layout(file, header, data_size)) ...  // as the data lie
//
//   const std::string text = header_text(file, header);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep::safetensors {

inline constexpr std::uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr std::string_view kChecksumPrefix = "xxh3.";
// In the order of Array's alternatives.
inline constexpr std::array<std::string_view, 5> kTypeNames = {"U8", "I32", "I64", "F32", "F64"};
inline constexpr std::array<std::size_t, 5> kTypeSizes = {1, 4, 8, 4, 8};
static_assert(kTypeNames.size() == std::variant_size_v<Array>);

// What the header says about one tensor; what it has not said yet is missing.
struct Entry {
  std::string name;
  std::optional<std::size_t> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;  // of its first byte and behind its last one
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

// Refuses whatever the format does not know, and checksums of the header that are not right. Every
// entry has type, shape and two offsets.
Header parse_header(std::string_view file, const std::string& text);

// Entries in the order of their data, checked: each as long as type and shape say, together all of
// the data.
std::vector<std::size_t> checked_layout(std::string_view file, const Header& header,
                                        std::uint64_t data_size);

// Of entries that have all; padded with spaces to a multiple of 8 bytes.
std::string header_text(std::string_view file, const Header& header);

// Over what the header means rather than its text, so that another program may lay the file out
// anew. Lengths go before texts: no two headers run together the same way.
std::string header_checksum(const Header& header);

// Metadata's key and value for the checksum of a tensor.
std::string checksum_key(std::string_view name);
std::string checksum_of(std::span<const std::byte> bytes);

// Elements of that shape, or nothing if there are more than any file can hold.
std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape);

// Any text, made fit to be shown in one line.
std::string shown(std::string_view text);

template <class... Args>
[[noreturn]] void refuse(std::string_view file, fmt::format_string<Args...> text, Args&&... args) {
  throw InputError(fmt::format("{}: {}", file, fmt::format(text, std::forward<Args>(args)...)));
}

}  // namespace fedep::safetensors
