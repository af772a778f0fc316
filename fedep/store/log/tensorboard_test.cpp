#include "fedep/store/log/tensorboard.h"

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

template <class T>
T fixed(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= T(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

// The payloads of a file of records, each checked against its two sums.
std::vector<std::string> payloads(std::string_view bytes) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const auto size = fixed<std::uint64_t>(bytes);
    EXPECT_EQ(fixed<std::uint32_t>(bytes.substr(8)), masked_crc32c(bytes.substr(0, 8)));
    const std::string_view payload = bytes.substr(12, size);
    EXPECT_EQ(fixed<std::uint32_t>(bytes.substr(12 + size)), masked_crc32c(payload));
    out.emplace_back(payload);
    bytes.remove_prefix(16 + size);
  }
  return out;
}

// A protobuf message read back without knowing its schema: field -> raw values. Numbers stay as
// their bits.
struct Fields {
  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string> bytes;
};
std::uint64_t take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
Fields parse(std::string_view in) {
  Fields fields;
  while (!in.empty()) {
    const std::uint64_t key = take_varint(in);
    const int field = int(key >> 3);
    switch (key & 7) {
      case 0:
        fields.numbers.emplace(field, take_varint(in));
        break;
      case 1:
        fields.numbers.emplace(field, fixed<std::uint64_t>(in));
        in.remove_prefix(8);
        break;
      case 2: {
        const std::uint64_t size = take_varint(in);
        fields.bytes.emplace(field, in.substr(0, size));
        in.remove_prefix(size);
        break;
      }
      case 5:
        fields.numbers.emplace(field, fixed<std::uint32_t>(in));
        in.remove_prefix(4);
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
  }
  return fields;
}

std::map<std::string, float> scalars_of(const std::string& event) {
  std::map<std::string, float> out;
  const Fields summary = parse(parse(event).bytes.find(5)->second);
  for (const auto& [field, bytes] : summary.bytes) {
    EXPECT_EQ(field, 1);
    const Fields value = parse(bytes);
    out[value.bytes.find(1)->second] =
        std::bit_cast<float>(std::uint32_t(value.numbers.find(2)->second));
  }
  return out;
}

TEST(Crc32c, IsThatOfThePublishedVectors) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // the check value of CRC-32/ISCSI
  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(char(i));
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32c, IsMaskedByRotationAndAConstant) {
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
  EXPECT_EQ(masked_crc32c("123456789"), ((0xe3069283u >> 15) | (0xe3069283u << 17)) + 0xa282ead8u);
}

TEST(TfRecord, FramesItsPayloadWithLengthAndSums) {
  const std::string record = tf_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(payloads(record), std::vector<std::string>{"abc"});
  EXPECT_EQ(payloads(tf_record("")), std::vector<std::string>{""});
}

TEST(ScalarsEvent, IsTheWireFormatByteByByte) {
  // wall_time = 1.5, step = 300, summary { value { tag: "a" simple_value: 0.5 } }
  const std::string expected(
      "\x09\0\0\0\0\0\0\xf8\x3f"
      "\x10\xac\x02"
      "\x2a\x0a"
      "\x0a\x08"
      "\x0a\x01"
      "a"
      "\x15\0\0\0\x3f",
      24);
  EXPECT_EQ(scalars_event(300, 1.5, {{"a", 0.5}}), expected);
}

TEST(ScalarsEvent, LeavesOutWhatDoesNotExist) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto scalars = scalars_of(scalars_event(1, 0, {{"a", nan}, {"b", 2.0}, {"c", -1 / 0.0}}));
  EXPECT_EQ(scalars, (std::map<std::string, float>{{"b", 2.0f}}));
}

TEST(EventFiles, BeginWithVersionAndStartAndHoldAMessagePerStep) {
  const TemporaryFolder folder;
  EventFile events(folder.path(), 41, 1700000000.25);
  events.write(41, 1700000001.0, {{"accuracy", 0.25}, {"nll", 1.5}});
  events.write(42, 1700000002.0, {});
  EXPECT_EQ(events.path().filename(), "events.out.tfevents.1700000000.0000");
  const auto messages = payloads(text_of(events.path()));
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(parse(messages[0]).bytes.find(3)->second, "brain.Event:2");
  const Fields start = parse(messages[1]);
  EXPECT_EQ(start.numbers.find(2)->second, 41u);
  EXPECT_EQ(parse(start.bytes.find(7)->second).numbers.find(1)->second, 1u);  // START
  EXPECT_EQ(parse(messages[2]).numbers.find(2)->second, 41u);
  EXPECT_EQ(std::bit_cast<double>(parse(messages[2]).numbers.find(1)->second), 1700000001.0);
  EXPECT_EQ(scalars_of(messages[2]),
            (std::map<std::string, float>{{"accuracy", 0.25f}, {"nll", 1.5f}}));
  EXPECT_EQ(parse(messages[3]).numbers.find(2)->second, 42u);
}

TEST(EventFiles, OfLaterStartsSortLaterEvenWithinASecond) {
  const TemporaryFolder folder;
  const EventFile first(folder.path(), 1, 1700000000);
  const EventFile second(folder.path(), 8, 1700000000);
  const EventFile third(folder.path(), 9, 1700000007);
  EXPECT_LT(first.path(), second.path());
  EXPECT_LT(second.path(), third.path());
}

TEST(EventFiles, OfAStartFindANameAlsoIfAnEarlierFileIsLost) {
  const TemporaryFolder folder;
  const auto first = EventFile(folder.path(), 1, 1700000000).path();
  const auto second = EventFile(folder.path(), 8, 1700000000).path();
  std::filesystem::remove(first);
  EXPECT_GT(EventFile(folder.path(), 9, 1700000000).path(), second);
}

TEST(EventFiles, ThatCannotBeMadeAreNamed) {
  const TemporaryFolder folder;
  const std::string refusal =
      message_of<RunError>([&] { const EventFile events(folder.path() / "missing", 1, 0); });
  EXPECT_NE(refusal.find("missing"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace fedep
