#include "fedep/message/record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");
static_assert(sizeof(float) == 4 && sizeof(double) == 8);

using Bytes = std::span<const std::byte>;

constexpr std::string_view kMagic = "FEDEPREC";
constexpr std::size_t kChecksumSize = 8;
constexpr std::size_t kPreambleSize = 16 + kChecksumSize;
constexpr std::size_t kSectionSize = kRecordMaxName + 16 + kChecksumSize;
constexpr std::size_t kTypeCount = std::variant_size_v<Array>;
constexpr std::array<std::string_view, kTypeCount> kTypeNames = {"u8", "i32", "i64", "f32", "f64"};
constexpr std::array<std::size_t, kTypeCount> kTypeSizes = {1, 4, 8, 4, 8};
static_assert(kRecordChunkBytes % 8 == 0, "no element may span two chunks");

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError("record: " + fmt::format(text, std::forward<Args>(args)...));
}

template <class T>
T load(Bytes bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

std::uint64_t chained(Bytes bytes, std::uint64_t previous) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), previous);
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

bool allowed_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kRecordMaxName &&
         std::all_of(name.begin(), name.end(), allowed_in_name);
}

// Any bytes, made fit to be shown in one line.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 2 * kRecordMaxName)) {
    out += c > ' ' && c <= '~' ? std::string(1, c)
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

[[noreturn]] void refuse_name(std::size_t number, std::string_view name) {
  refuse("name of section {} must be 1 to {} characters of [a-z0-9_.], but is '{}'", number,
         kRecordMaxName, shown(name));
}

// A float is NaN or infinite when all its exponent bits are set: adding one to the lowest of them
// then carries into the sign bit. Words of 64 bits hold two f32 or one f64, and no carry crosses
// from one to the next.
template <class T>
struct FloatBits;
template <>
struct FloatBits<float> {
  static constexpr std::uint64_t exponent = 0x7f800000'7f800000, low = 0x00800000'00800000,
                                 sign = 0x80000000'80000000;
};
template <>
struct FloatBits<double> {
  static constexpr std::uint64_t exponent = 0x7ff00000'00000000, low = 0x00100000'00000000,
                                 sign = 0x80000000'00000000;
};

template <class T>
bool words_finite(Bytes bytes) {
  using Bits = FloatBits<T>;
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kLanes> carry = {};
  std::array<std::uint64_t, kLanes> word = {};
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(word)) {
    const std::size_t n = std::min(sizeof(word), bytes.size() - at);
    if (n < sizeof(word)) word = {};
    std::memcpy(word.data(), bytes.data() + at, n);
    for (std::size_t i = 0; i < kLanes; ++i) carry[i] |= (word[i] & Bits::exponent) + Bits::low;
  }
  std::uint64_t any = 0;
  for (const std::uint64_t lane : carry) any |= lane;
  return (any & Bits::sign) == 0;
}

template <class T>
std::size_t first_not_finite_in(std::span<const T> values) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!words_finite<T>(std::as_bytes(values))) {
      const auto bad = [](T x) { return !std::isfinite(x); };
      return std::size_t(std::find_if(values.begin(), values.end(), bad) - values.begin());
    }
  }
  return values.size();
}

template <class T>
void check_finite_values(std::string_view name, std::span<const T> values, std::size_t offset) {
  const std::size_t i = first_not_finite_in(values);
  if (i == values.size()) return;
  refuse("element {} of section {} must be finite, but is {}", offset + i, name, values[i]);
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

void check_sections(std::span<const SectionView> sections) {
  if (sections.size() > kRecordMaxSections) {
    refuse("section count must be at most {}, but is {}", kRecordMaxSections, sections.size());
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const std::string& name = sections[i].name;
    if (!is_name(name)) refuse_name(i + 1, name);
    const auto same = [&](const SectionView& other) { return other.name == name; };
    if (std::any_of(sections.begin(), sections.begin() + std::ptrdiff_t(i), same)) {
      refuse("section names must differ, but {} comes twice", name);
    }
  }
}

}  // namespace

ArrayView view(const Array& array) {
  return std::visit([](const auto& values) { return ArrayView(std::span(values)); }, array);
}

std::span<const std::byte> bytes_of(const ArrayView& array) {
  return std::visit([](const auto& values) { return std::as_bytes(values); }, array);
}

std::size_t first_not_finite(const ArrayView& array) {
  return std::visit([](const auto& values) { return first_not_finite_in(values); }, array);
}

bool Record::has(std::string_view name) const {
  return std::any_of(sections.begin(), sections.end(),
                     [&](const Section& section) { return section.name == name; });
}

std::size_t Record::locate(std::string_view name, std::size_t type_index) const {
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].name != name) continue;
    if (const std::size_t came = sections[i].values.index(); came != type_index) {
      refuse("section {} must hold {}, but holds {}", name, kTypeNames[type_index],
             kTypeNames[came]);
    }
    return i;
  }
  std::string there;
  for (const Section& section : sections) {
    if (there.size() > 100) {
      there += ", ...";
      break;
    }
    there += (there.empty() ? "" : ", ") + section.name;
  }
  refuse("section {} must be present, but there is {}", shown(name),
         there.empty() ? "none" : "only " + there);
}

std::vector<SectionView> view(const Record& record) {
  std::vector<SectionView> sections;
  sections.reserve(record.sections.size());
  for (const Section& section : record.sections) {
    sections.push_back({section.name, view(section.values)});
  }
  return sections;
}

void write_record(std::span<const SectionView> sections, const ByteSink& sink) {
  check_sections(sections);
  std::uint64_t checksum = 0;
  // Fills in the checksum that ends a preamble or section header, and sends it.
  const auto send_header = [&](std::span<std::byte> unit) {
    const std::size_t end = unit.size() - kChecksumSize;
    checksum = chained(unit.first(end), checksum);
    store(unit, end, checksum);
    sink(unit);
  };

  std::array<std::byte, kPreambleSize> preamble = {};
  std::memcpy(preamble.data(), kMagic.data(), kMagic.size());
  store(preamble, 8, kRecordVersion);
  store(preamble, 12, std::uint32_t(sections.size()));
  send_header(preamble);

  for (const SectionView& section : sections) {
    const std::size_t element_size = kTypeSizes[section.values.index()];
    const Bytes data = bytes_of(section.values);
    std::array<std::byte, kSectionSize> header = {};
    std::memcpy(header.data(), section.name.data(), section.name.size());
    store(header, kRecordMaxName, std::uint32_t(section.values.index() + 1));
    store(header, kRecordMaxName + 8, std::uint64_t(data.size() / element_size));
    send_header(header);

    for (std::size_t at = 0; at < data.size(); at += kRecordChunkBytes) {
      const Bytes chunk = data.subspan(at, std::min(kRecordChunkBytes, data.size() - at));
      std::visit(
          [&](const auto& values) {
            const std::size_t first = at / element_size;
            check_finite_values(section.name, values.subspan(first, chunk.size() / element_size),
                                first);
          },
          section.values);
      checksum = chained(chunk, checksum);
      sink(chunk);
      sink(std::as_bytes(std::span(&checksum, 1)));
    }
  }
}

std::uint64_t record_size(std::span<const SectionView> sections) {
  std::uint64_t size = kPreambleSize;
  for (const SectionView& section : sections) {
    const std::uint64_t bytes = bytes_of(section.values).size();
    const std::uint64_t chunks = (bytes + kRecordChunkBytes - 1) / kRecordChunkBytes;
    size += kSectionSize + bytes + chunks * kChecksumSize;
  }
  return size;
}

std::vector<std::byte> record_bytes(std::span<const SectionView> sections) {
  std::vector<std::byte> out;
  out.reserve(std::size_t(record_size(sections)));
  write_record(sections, [&](Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
  return out;
}

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
