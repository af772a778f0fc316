#include "fedep/message/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fedep/message/record_layout.h"

namespace fedep {
namespace {

using namespace record_layout;

constexpr std::array<std::string_view, kTypeCount> kTypeNames = {"u8", "i32", "i64", "f32", "f64"};

template <class T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
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

}  // namespace fedep
