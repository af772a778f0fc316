// The reading half of record.h.
#include "fedep/message/record.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/record_layout.h"

namespace fedep {
namespace {

using namespace record_layout;

template <class T>
T load(Bytes bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Splits off the checksum that ends a unit and compares it.
template <class Name>
Bytes verified(Bytes unit, std::uint64_t& checksum, Name name) {
  const Bytes content = unit.first(unit.size() - kChecksumSize);
  const auto written = load<std::uint64_t>(unit, content.size());
  const std::uint64_t computed = chained(content, checksum);
  if (written != computed) {
    refuse("{} must have checksum {:016x}, but has {:016x}", name(), written, computed);
  }
  checksum = computed;
  return content;
}

// Grows by doubling, or to what the bytes already at hand can fill: so never beyond twice what has
// been received, and never beyond what was announced.
template <class T>
void append(std::vector<T>& values, Bytes data, std::size_t at_hand, std::uint64_t announced) {
  const std::size_t old_size = values.size();
  const std::size_t new_size = old_size + data.size() / sizeof(T);
  if (new_size > values.capacity()) {
    const std::uint64_t wanted = std::max(new_size + at_hand / sizeof(T), 2 * old_size);
    values.reserve(std::size_t(std::min(wanted, announced)));
  }
  values.resize(new_size);
  std::memcpy(values.data() + old_size, data.data(), data.size());
}

template <std::size_t... I>
Array empty_array(std::size_t index, std::index_sequence<I...>) {
  Array array;
  ((index == I ? void(array.emplace<I>()) : void()), ...);
  return array;
}

}  // namespace

Record read_record(std::span<const std::byte> bytes) {
  RecordReader reader;
  reader.feed(bytes);
  return reader.take();
}

void RecordReader::feed(std::span<const std::byte> bytes) {
  if (!refusal_.empty()) throw InputError(refusal_);
  try {
    while (!bytes.empty()) {
      if (finished()) {
        refuse("must end after {} bytes, but {} more follow", received_, bytes.size());
      }
      // A unit is a preamble, a section header or a chunk, with its checksum. One that arrives in
      // one piece is read where it lies.
      const std::size_t unit = unit_size();
      const std::size_t n = std::min(unit - pending_.size(), bytes.size());
      const Bytes piece = bytes.first(n);
      bytes = bytes.subspan(n);
      received_ += n;
      at_hand_ = bytes.size();
      if (n == unit) {
        accept(piece);
        continue;
      }
      pending_.insert(pending_.end(), piece.begin(), piece.end());
      if (pending_.size() == unit) {
        accept(pending_);
        pending_.clear();
      }
    }
  } catch (const InputError& error) {
    refusal_ = error.what();
    throw;
  }
}

void RecordReader::finish() const {
  if (!refusal_.empty()) throw InputError(refusal_);
  if (!finished()) refuse("{} must follow, but it ends after {} bytes", awaited(), received_);
}

Record RecordReader::take() {
  finish();
  Record record = std::move(record_);
  *this = RecordReader();
  return record;
}

std::size_t RecordReader::unit_size() const {
  if (stage_ == Stage::preamble) return kPreambleSize;
  if (stage_ == Stage::section) return kSectionSize;
  return std::size_t(std::min<std::uint64_t>(remaining_, kRecordChunkBytes)) + kChecksumSize;
}

std::string RecordReader::awaited() const {
  if (stage_ == Stage::preamble) return "preamble";
  if (stage_ == Stage::section) {
    return fmt::format("section {} of {}", record_.sections.size() + 1, section_count_);
  }
  return fmt::format("chunk {} of section {}", chunk_number_, record_.sections.back().name);
}

void RecordReader::accept(std::span<const std::byte> unit) {
  if (stage_ == Stage::preamble) return accept_preamble(unit);
  if (stage_ == Stage::section) return accept_section(unit);
  accept_chunk(unit);
}

void RecordReader::accept_preamble(std::span<const std::byte> unit) {
  const std::string_view magic(reinterpret_cast<const char*>(unit.data()), kMagic.size());
  if (magic != kMagic) refuse("must start with {}, but starts with '{}'", kMagic, shown(magic));
  if (const auto version = load<std::uint32_t>(unit, 8); version != kRecordVersion) {
    refuse("version must be {}, but is {}", kRecordVersion, version);
  }
  const Bytes content = verified(unit, checksum_, [] { return std::string("preamble"); });
  section_count_ = load<std::uint32_t>(content, 12);
  if (section_count_ > kRecordMaxSections) {
    refuse("section count must be at most {}, but is {}", kRecordMaxSections, section_count_);
  }
  next_section();
}

void RecordReader::accept_section(std::span<const std::byte> unit) {
  const std::size_t number = record_.sections.size() + 1;
  const Bytes content =
      verified(unit, checksum_, [&] { return fmt::format("header of section {}", number); });

  const std::string_view padded(reinterpret_cast<const char*>(content.data()), kRecordMaxName);
  const std::string_view name = padded.substr(0, padded.find_last_not_of('\0') + 1);
  if (!is_name(name)) refuse_name(number, name);
  if (record_.has(name)) refuse("section names must differ, but {} comes twice", name);

  const auto type = load<std::uint32_t>(content, kRecordMaxName);
  if (type < 1 || type > kTypeCount) {
    refuse("type of section {} must be 1 to {}, but is {}", name, kTypeCount, type);
  }
  if (const auto reserved = load<std::uint32_t>(content, kRecordMaxName + 4); reserved != 0) {
    refuse("reserved field of section {} must be 0, but is {}", name, reserved);
  }
  element_count_ = load<std::uint64_t>(content, kRecordMaxName + 8);
  const std::uint64_t most = std::uint64_t(std::numeric_limits<std::ptrdiff_t>::max()) / 16;
  if (element_count_ > most) {
    refuse("section {} must have at most {} elements, but claims {}", name, most, element_count_);
  }

  record_.sections.push_back(
      {std::string(name), empty_array(type - 1, std::make_index_sequence<kTypeCount>())});
  remaining_ = element_count_ * kTypeSizes[type - 1];
  chunk_number_ = 1;
  stage_ = Stage::chunk;
  if (remaining_ == 0) next_section();
}

void RecordReader::accept_chunk(std::span<const std::byte> unit) {
  const Bytes data = verified(unit, checksum_, [&] { return awaited(); });
  Section& section = record_.sections.back();
  std::visit(
      [&](auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        const std::size_t offset = values.size();
        append(values, data, at_hand_, element_count_);
        check_finite_values(section.name, std::span<const T>(values).subspan(offset), offset);
      },
      section.values);
  remaining_ -= data.size();
  ++chunk_number_;
  if (remaining_ == 0) next_section();
}

void RecordReader::next_section() {
  stage_ = record_.sections.size() == section_count_ ? Stage::done : Stage::section;
}

}  // namespace fedep
