#include "fedep/message/record.h"

#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kPreamble = 24;
constexpr std::size_t kHeader = 56;

template <class T>
std::vector<T> counted(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = T(i * 7 + 1);
  return values;
}

// One section of every type, one of them longer than two chunks, one empty, one name of full
// length.
Record varied() {
  return {{{"a", counted<std::uint8_t>(3)},
           {"chunks", counted<float>(2 * kRecordChunkBytes / 4 + 5)},
           {"none", std::vector<double>()},
           {"b_9.x", counted<std::int32_t>(2)},
           {std::string(kRecordMaxName, 'n'), counted<std::int64_t>(1)},
           {"d", std::vector<double>{-0.0, 5e-324, 1e308}}}};
}

// Small enough to damage in every place.
Record small() {
  return {{{"eta", std::vector<float>{1, 2, 3}}, {"k", std::vector<std::uint8_t>{7}}}};
}

Bytes encoded(const Record& record) { return record_bytes(view(record)); }

std::string refusal(const Bytes& bytes) {
  return message_of<InputError>([&] { read_record(bytes); });
}

template <class T>
void put(Bytes& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// A record of one section that lies, yet whose checksums are right.
struct Forged {
  std::string magic = "FEDEPREC";
  std::uint32_t version = 1;
  std::uint32_t section_count = 1;
  std::string name = "eta";
  std::uint32_t type = 4;
  std::uint32_t reserved = 0;
  std::uint64_t element_count = 1;
  Bytes data = Bytes(4);

  Bytes bytes() const {
    Bytes out(kPreamble + kHeader);
    std::memcpy(out.data(), magic.data(), 8);
    put(out, 8, version);
    put(out, 12, section_count);
    put(out, 16, XXH3_64bits(out.data(), 16));
    std::memcpy(out.data() + kPreamble, name.data(), name.size());
    put(out, 56, type);
    put(out, 60, reserved);
    put(out, 64, element_count);
    std::uint64_t checksum = XXH3_64bits(out.data(), 16);
    checksum = XXH3_64bits_withSeed(out.data() + kPreamble, 48, checksum);
    put(out, 72, checksum);
    if (data.empty()) return out;
    checksum = XXH3_64bits_withSeed(data.data(), data.size(), checksum);
    out.insert(out.end(), data.begin(), data.end());
    out.resize(out.size() + 8);
    put(out, out.size() - 8, checksum);
    return out;
  }
};

TEST(ByteFormat, GivesBackWhatWasWritten) {
  for (const Record& record : {Record{}, small(), varied()}) {
    EXPECT_EQ(read_record(encoded(record)), record);
  }
}

TEST(ByteFormat, HasOneEncodingOfARecord) {
  const Bytes bytes = encoded(varied());
  EXPECT_EQ(encoded(read_record(bytes)), bytes);
}

TEST(ByteFormat, DoesNotDependOnThePiecesItArrivesIn) {
  const Record record = varied();
  const Bytes bytes = encoded(record);
  RecordReader reader;
  // 1, 2, 4 ... bytes and a piece of more than a chunk, again and again.
  std::size_t size = 1;
  for (std::size_t at = 0; at < bytes.size();) {
    EXPECT_FALSE(reader.finished());
    const std::size_t n = std::min(size, bytes.size() - at);
    reader.feed(std::span(bytes).subspan(at, n));
    at += n;
    size = size > kRecordChunkBytes ? 1 : 2 * size;
  }
  EXPECT_TRUE(reader.finished());
  EXPECT_EQ(reader.take(), record);

  for (const std::byte byte : encoded(small())) reader.feed(std::span(&byte, 1));
  EXPECT_EQ(reader.take(), small());
}

TEST(ByteFormat, IsAsLongAsItSays) {
  for (const Record& record : {Record{}, small(), varied()}) {
    EXPECT_EQ(encoded(record).size(), record_size(view(record)));
  }
}

// The bytes themselves, so that no later change goes unnoticed. Layout from the table in record.h;
// checksums from the xxhash library.
TEST(ByteFormat, HasTheDocumentedLayout) {
  const Forged forged{.element_count = 2, .data = Bytes(8, std::byte(0x3f))};
  const float value = std::bit_cast<float>(0x3f3f3f3fu);
  EXPECT_EQ(forged.bytes(), encoded({{{"eta", std::vector<float>{value, value}}}}));
  const Bytes empty = encoded(Record{});
  const std::string_view text(reinterpret_cast<const char*>(empty.data()), 16);
  EXPECT_EQ(text, std::string_view("FEDEPREC\1\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(empty.size(), kPreamble);
}

TEST(ByteFormat, DoesNotCopyTheArraysItWrites) {
  const auto values = counted<float>(3 * kRecordChunkBytes / 4);
  const std::vector<SectionView> sections = {{"x", std::span(values)}};
  std::size_t direct = 0;
  write_record(sections, [&](std::span<const std::byte> bytes) {
    const void* at = bytes.data();
    if (at >= values.data() && at < values.data() + values.size()) direct += bytes.size();
  });
  EXPECT_EQ(direct, 3 * kRecordChunkBytes);
}

TEST(ByteFormat, RefusesATruncatedRecord) {
  const Bytes bytes = encoded(small());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THAT(refusal(Bytes(bytes.begin(), bytes.begin() + std::ptrdiff_t(n))),
                HasSubstr("must follow, but it ends after " + std::to_string(n) + " bytes"));
  }
}

TEST(ByteFormat, SaysWhatATruncatedRecordLacks) {
  Bytes bytes = encoded(small());
  bytes.resize(bytes.size() - 1);
  EXPECT_EQ(refusal(bytes),
            "record: chunk 1 of section k must follow, but it ends after 164 bytes");
  bytes.resize(kPreamble + kHeader + 12 + 8);
  EXPECT_EQ(refusal(bytes), "record: section 2 of 2 must follow, but it ends after 100 bytes");
  EXPECT_EQ(refusal({}), "record: preamble must follow, but it ends after 0 bytes");
}

TEST(ByteFormat, RefusesAnyFlippedBit) {
  const Bytes bytes = encoded(small());
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    Bytes damaged = bytes;
    damaged[i / 8] ^= std::byte(1 << i % 8);
    EXPECT_NE(refusal(damaged), "") << "bit " << i;
  }
}

TEST(ByteFormat, RefusesTrailingBytes) {
  Bytes bytes = encoded(small());
  bytes.resize(bytes.size() + 3);
  EXPECT_EQ(refusal(bytes), "record: must end after 165 bytes, but 3 more follow");
}

// Chunks of the same content, so that only the chain can tell.
TEST(ByteFormat, RefusesChunksDroppedRepeatedOrMoved) {
  const std::size_t unit = kRecordChunkBytes + 8;
  const std::ptrdiff_t first = kPreamble + kHeader;
  const Record record = {{{"same", std::vector<float>(3 * kRecordChunkBytes / 4, 1.f)},
                          {"tail", std::vector<float>(kRecordChunkBytes / 4, 1.f)}}};
  const Bytes bytes = encoded(record);
  const auto chunk = [&](std::size_t i) {
    return bytes.begin() + first + std::ptrdiff_t(i * unit);
  };

  Bytes moved = bytes;
  std::copy(chunk(1), chunk(2), moved.begin() + first);
  std::copy(chunk(0), chunk(1), moved.begin() + first + std::ptrdiff_t(unit));
  EXPECT_THAT(refusal(moved), HasSubstr("chunk 1 of section same must have checksum"));

  Bytes repeated = bytes;
  std::copy(chunk(0), chunk(1), repeated.begin() + first + std::ptrdiff_t(unit));
  EXPECT_THAT(refusal(repeated), HasSubstr("chunk 2 of section same must have checksum"));

  Bytes dropped = bytes;
  dropped.erase(dropped.begin() + first, dropped.begin() + first + std::ptrdiff_t(unit));
  EXPECT_THAT(refusal(dropped), HasSubstr("chunk 1 of section same must have checksum"));
}

TEST(ByteFormat, RefusesAWholeSectionFromAnotherRecord) {
  Bytes bytes = encoded({{{"a", std::vector<float>{1}}, {"b", std::vector<float>{2}}}});
  const Bytes other = encoded({{{"a", std::vector<float>{9}}, {"b", std::vector<float>{2}}}});
  const std::ptrdiff_t second = kPreamble + kHeader + 4 + 8;
  std::copy(other.begin() + second, other.end(), bytes.begin() + second);
  EXPECT_THAT(refusal(bytes), HasSubstr("header of section 2 must have checksum"));
}

TEST(ByteFormat, AcceptsTheForgedRecordThatTheNextTestsVary) {
  EXPECT_EQ(refusal(Forged{}.bytes()), "");
}

TEST(ByteFormat, RefusesAnotherMagicOrVersion) {
  EXPECT_EQ(refusal(Forged{.magic = "<html>\n "}.bytes()),
            "record: must start with FEDEPREC, but starts with '<html>\\x0a\\x20'");
  EXPECT_EQ(refusal(Forged{.version = 2}.bytes()), "record: version must be 1, but is 2");
}

TEST(ByteFormat, RefusesTooManySections) {
  EXPECT_EQ(refusal(Forged{.section_count = 1025}.bytes()),
            "record: section count must be at most 1024, but is 1025");
  std::vector<SectionView> sections(1025);
  EXPECT_THROW(record_bytes(sections), InputError);
}

TEST(ByteFormat, HoldsAsManySectionsAsItSays) {
  Record record;
  for (int i = 0; i < 1024; ++i) record.sections.push_back({std::to_string(i), {}});
  EXPECT_EQ(read_record(encoded(record)), record);
}

TEST(ByteFormat, RefusesBadNames) {
  using namespace std::string_literals;
  EXPECT_EQ(refusal(Forged{.name = ""}.bytes()),
            "record: name of section 1 must be 1 to 32 characters of [a-z0-9_.], but is ''");
  for (const std::string& name :
       {"E"s, "a b"s, "a\0b"s, "\0a"s, "\x1b[31m"s, "\xc3\xa4"s, "a/b"s}) {
    EXPECT_THAT(refusal(Forged{.name = name}.bytes()), HasSubstr("name of section 1 must be"));
    EXPECT_THROW(encoded({{{name, Array()}}}), InputError);
  }
  EXPECT_THROW(encoded({{{std::string(33, 'a'), Array()}}}), InputError);
  EXPECT_THROW(encoded({{{"", Array()}}}), InputError);
}

TEST(ByteFormat, RefusesANameThatComesTwice) {
  EXPECT_THROW(encoded({{{"a", Array()}, {"b", Array()}, {"a", Array()}}}), InputError);
  // Two empty sections whose second header repeats the first, with the right checksum.
  const Forged forged{.section_count = 2, .element_count = 0, .data = {}};
  Bytes bytes = forged.bytes();
  bytes.resize(kPreamble + 2 * kHeader);
  std::memcpy(bytes.data() + 80, bytes.data() + kPreamble, 48);
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + 72, 8);
  put(bytes, 128, XXH3_64bits_withSeed(bytes.data() + 80, 48, checksum));
  EXPECT_EQ(refusal(bytes), "record: section names must differ, but eta comes twice");
}

TEST(ByteFormat, RefusesUnknownTypesAndReservedBits) {
  EXPECT_EQ(refusal(Forged{.type = 0}.bytes()),
            "record: type of section eta must be 1 to 5, but is 0");
  EXPECT_EQ(refusal(Forged{.type = 6}.bytes()),
            "record: type of section eta must be 1 to 5, but is 6");
  EXPECT_EQ(refusal(Forged{.reserved = 1}.bytes()),
            "record: reserved field of section eta must be 0, but is 1");
}

TEST(ByteFormat, RefusesElementCountsThatOverflow) {
  for (const std::uint64_t count : {~std::uint64_t(0), std::uint64_t(1) << 62,
                                    (std::uint64_t(1) << 62) + 1, std::uint64_t(1) << 60}) {
    EXPECT_THAT(refusal(Forged{.element_count = count}.bytes()),
                HasSubstr("must have at most 576460752303423487 elements, but claims"));
  }
}

// The claim is 4 PB: were it believed, this would fail to allocate.
TEST(ByteFormat, DoesNotAllocateWhatAHeaderClaims) {
  const Forged forged{.element_count = std::uint64_t(1) << 50, .data = Bytes(kRecordChunkBytes)};
  EXPECT_THAT(refusal(forged.bytes()), HasSubstr("chunk 2 of section eta must follow"));
}

TEST(ByteFormat, GrowsToWhatWasAnnouncedAndNoFurther) {
  const Record record = read_record(encoded(varied()));
  const auto& values = record.get<float>("chunks");
  EXPECT_EQ(values.capacity(), values.size());
}

TEST(ByteFormat, RefusesNaNAndInfinityOnWritingAndReading) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    // Every place relative to the words that are tested together, and the last chunk.
    for (const std::size_t at : {std::size_t(0), std::size_t(1), std::size_t(15), std::size_t(16),
                                 std::size_t(36), kRecordChunkBytes / 4 + 2}) {
      std::vector<float> values(at < 37 ? 37 : at + 1, 1.f);
      values[at] = bad;
      std::vector<double> doubles(values.begin(), values.end());
      EXPECT_EQ(first_not_finite(std::span<const float>(values)), at);
      EXPECT_EQ(first_not_finite(std::span<const double>(doubles)), at);
      EXPECT_THROW(encoded({{{"x", values}}}), InputError);
      EXPECT_THROW(encoded({{{"x", doubles}}}), InputError);
    }
    Forged forged;
    put(forged.data, 0, bad);
    EXPECT_THAT(refusal(forged.bytes()), HasSubstr("element 0 of section eta must be finite"));
    forged = {.type = 5, .data = Bytes(8)};
    put(forged.data, 0, double(bad));
    EXPECT_THAT(refusal(forged.bytes()), HasSubstr("element 0 of section eta must be finite"));
  }
}

TEST(ByteFormat, TakesTheExtremesOfFiniteNumbers) {
  using F = std::numeric_limits<float>;
  using D = std::numeric_limits<double>;
  const Record record = {
      {{"f", std::vector<float>{F::max(), F::lowest(), F::min(), F::denorm_min(), 0.f}},
       {"d", std::vector<double>{D::max(), D::lowest(), D::min(), D::denorm_min(), 0.}},
       {"i", std::vector<std::int64_t>{-1, 0x7ff0000000000000}},
       {"j", std::vector<std::int32_t>{-1, 0x7f800000}}}};
  EXPECT_EQ(read_record(encoded(record)), record);
}

TEST(ByteFormat, KeepsRefusingOnceItHasRefused) {
  RecordReader reader;
  const Bytes bad = Forged{.version = 7}.bytes();
  EXPECT_THROW(reader.feed(bad), InputError);
  EXPECT_THROW(reader.feed(encoded(small())), InputError);
  EXPECT_THROW(reader.finish(), InputError);
  EXPECT_THROW(reader.take(), InputError);
}

TEST(Record, SaysWhatIsMissingOrOfAnotherType) {
  const Record record = small();
  EXPECT_EQ(record.get<float>("eta"), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(record.has("k"));
  EXPECT_FALSE(record.has("lambda"));
  EXPECT_EQ(message_of<InputError>([&] { record.get<float>("lambda"); }),
            "record: section lambda must be present, but there is only eta, k");
  EXPECT_EQ(message_of<InputError>([&] { Record().get<float>("lambda"); }),
            "record: section lambda must be present, but there is none");
  EXPECT_EQ(message_of<InputError>([&] { record.get<std::int64_t>("eta"); }),
            "record: section eta must hold i64, but holds f32");
}

TEST(Record, GivesItsValuesAwayWithoutCopying) {
  Record record = small();
  const float* at = record.get<float>("eta").data();
  const std::vector<float> eta = record.extract<float>("eta");
  EXPECT_EQ(eta.data(), at);
  EXPECT_TRUE(record.get<float>("eta").empty());
}

}  // namespace
}  // namespace fedep
