// The one byte format of wire, ledger and site store: a record is a list of named arrays.
//
//   const std::vector<SectionView> sections = {{"eta", std::span<const float>(eta)}, ...};
//   write_record(sections, [&](std::span<const std::byte> bytes) { socket.send(bytes); });
//
//   RecordReader reader;
//   while (socket.receive(buffer)) reader.feed(buffer);   // pieces of any size
//   const Record record = reader.take();                  // throws if the record is not complete
//   const std::vector<float>& eta = record.get<float>("eta");
//
// Layout, all numbers little-endian, h(bytes, seed) = XXH3 64 bits:
//
//   preamble   magic            8 bytes   "FEDEPREC"
//              version          u32       1
//              section count    u32       at most 1024
//              checksum         u64       c_0 = h(the 16 bytes above, 0)
//   section    name             32 bytes  1 to 32 of [a-z0-9_.], zero padded; no name twice
//              type             u32       1 u8, 2 i32, 3 i64, 4 f32, 5 f64
//              reserved         u32       0
//              element count    u64
//              checksum         u64       c_n = h(the 48 bytes above, c_{n-1})
//   chunk      data             1 MiB, or what remains of the section if that is less
//              checksum         u64       c_n = h(data, c_{n-1})
//
// A section is followed by its chunks (none if it is empty), then by the next section; nothing
// follows the last. Each checksum is seeded with the one before, so a chunk or section that is
// dropped, repeated or moved is found, and the last checksum covers everything. Checksums find
// accidents, they do not stop a forger.
//
// There is exactly one encoding of a record. Floats must be finite. A reader refuses whatever
// differs with an InputError, and holds no more memory than a small multiple of what it was fed,
// whatever a header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fedep/message/array.h"

namespace fedep {

inline constexpr std::uint32_t kRecordVersion = 1;
inline constexpr std::size_t kRecordMaxSections = 1024;
inline constexpr std::size_t kRecordMaxName = 32;
inline constexpr std::size_t kRecordChunkBytes = std::size_t(1) << 20;

struct Section {
  std::string name;
  Array values;
  bool operator==(const Section&) const = default;
};

// A section whose values live elsewhere and must outlive it.
struct SectionView {
  std::string name;
  ArrayView values;
};

struct Record {
  std::vector<Section> sections;

  bool has(std::string_view name) const;
  // Throw InputError if there is no such section or its elements are not of type T.
  template <ArrayElement T>
  const std::vector<T>& get(std::string_view name) const;
  // As get, but moves the values out and leaves the section empty.
  template <ArrayElement T>
  std::vector<T> extract(std::string_view name);

  bool operator==(const Record&) const = default;

 private:
  // The section's place; throws if it is missing or the index of its array's type differs.
  std::size_t locate(std::string_view name, std::size_t type_index) const;
};

std::vector<SectionView> view(const Record& record);

using ByteSink = std::function<void(std::span<const std::byte>)>;

// Hands the sink the record piece by piece; arrays are not copied. Names are checked before the
// first piece, floats as they pass: if one is not finite this throws InputError, and what the sink
// was given until then is a truncated record, which no reader accepts.
void write_record(std::span<const SectionView> sections, const ByteSink& sink);
std::uint64_t record_size(std::span<const SectionView> sections);
std::vector<std::byte> record_bytes(std::span<const SectionView> sections);

Record read_record(std::span<const std::byte> bytes);

// Takes a record apart as its bytes arrive. Once it has refused something it refuses everything.
class RecordReader {
 public:
  void feed(std::span<const std::byte> bytes);
  bool finished() const { return stage_ == Stage::done; }
  // Throws InputError if the record is not complete.
  void finish() const;
  // The complete record; the reader is then ready for another one.
  Record take();

 private:
  enum class Stage { preamble, section, chunk, done };

  std::size_t unit_size() const;
  void accept(std::span<const std::byte> unit);
  void accept_preamble(std::span<const std::byte> unit);
  void accept_section(std::span<const std::byte> unit);
  void accept_chunk(std::span<const std::byte> unit);
  void next_section();
  std::string awaited() const;

  Stage stage_ = Stage::preamble;
  std::size_t section_count_ = 0;    // announced by the preamble
  std::uint64_t element_count_ = 0;  // announced by the current section
  std::uint64_t remaining_ = 0;      // bytes of the current section still to come
  std::uint64_t chunk_number_ = 0;   // of the current section, from 1
  std::uint64_t checksum_ = 0;       // the last one verified
  std::uint64_t received_ = 0;
  std::size_t at_hand_ = 0;         // bytes given to feed and not yet looked at
  std::vector<std::byte> pending_;  // an incomplete preamble, section header or chunk
  Record record_;
  std::string refusal_;
};

template <ArrayElement T>
const std::vector<T>& Record::get(std::string_view name) const {
  const std::size_t i = locate(name, Array(std::in_place_type<std::vector<T>>).index());
  return std::get<std::vector<T>>(sections[i].values);
}

template <ArrayElement T>
std::vector<T> Record::extract(std::string_view name) {
  const std::size_t i = locate(name, Array(std::in_place_type<std::vector<T>>).index());
  return std::exchange(std::get<std::vector<T>>(sections[i].values), {});
}

}  // namespace fedep
