#include "fedep/data/image/tf_example.h"

#include <gtest/gtest.h>

#include "fedep/data/image/test_emnist_files.h"

namespace fedep {
namespace {

std::optional<TfExample> parse(const std::string& message) {
  return parse_tf_example({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
}

TEST(TfExample, ReadsWhatProtocolBuffersWrite) {
  // Features {'label': int64 [300, -1], 'title': bytes ['ab']}, as the encoding's documentation
  // has it: 300 is ac 02, -1 is ten bytes.
  const std::string message(
      "\x0a\x2c\x0a\x19\x0a\x05\x6c\x61\x62\x65\x6c\x12\x10\x1a\x0e\x0a\x0c\xac\x02\xff"
      "\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x0f\x0a\x05\x74\x69\x74\x6c\x65\x12\x06"
      "\x0a\x04\x0a\x02\x61\x62",
      46);
  const auto example = parse(message);
  ASSERT_TRUE(example);
  EXPECT_EQ(*example->integers("label"), (std::vector<std::int64_t>{300, -1}));
  EXPECT_EQ(*example->bytes("title"), (std::vector<std::string_view>{"ab"}));
}

TEST(TfExample, NumbersMayBePackedOrNot) {
  const std::string one("\x0d\x00\x00\x80\x3f", 5);   // field 1, fixed32: 1.0f
  const std::string half("\x0d\x00\x00\x00\x3f", 5);  // 0.5f
  const std::string seven("\x08\x07", 2);             // field 1, varint
  const std::string message = proto_bytes(1, proto_entry("f", proto_bytes(2, one + half)) +
                                                 proto_entry("i", proto_bytes(3, seven + seven)) +
                                                 proto_entry("p", proto_floats({1.0, 0.5})) +
                                                 proto_entry("n", proto_integer(-1)));
  const auto example = parse(message);
  ASSERT_TRUE(example);
  EXPECT_EQ(*example->floats("f"), (std::vector<float>{1.0f, 0.5f}));
  EXPECT_EQ(*example->floats("p"), *example->floats("f"));
  EXPECT_EQ(*example->integers("i"), (std::vector<std::int64_t>{7, 7}));
  EXPECT_EQ(*example->integers("n"), (std::vector<std::int64_t>{-1}));
}

TEST(TfExample, AFeatureOfAnotherKindOrNameIsNull) {
  const std::string message = proto_bytes(1, proto_entry("x", proto_floats({1.0})));
  const auto example = parse(message);
  ASSERT_TRUE(example);
  EXPECT_EQ(example->integers("x"), nullptr);
  EXPECT_EQ(example->bytes("x"), nullptr);
  EXPECT_EQ(example->floats("y"), nullptr);
}

TEST(TfExample, UnknownFieldsArePassedOver) {
  const std::string unknown("\x10\x05\x1d\x00\x00\x00\x00\x21\x00\x00\x00\x00\x00\x00\x00\x00", 16);
  const std::string message =
      unknown + proto_bytes(1, unknown + proto_entry("x", proto_floats({0.25})));
  const auto example = parse(message);
  ASSERT_TRUE(example);
  EXPECT_EQ(*example->floats("x"), (std::vector<float>{0.25f}));
}

TEST(TfExample, AnEmptyMessageHasNoFeatures) {
  const auto example = parse("");
  ASSERT_TRUE(example);
  EXPECT_TRUE(example->features.empty());
}

TEST(TfExample, EveryTruncationIsMalformedOrSmaller) {
  const std::string message = emnist_proto(some_emnist(1)[0]);
  ASSERT_TRUE(parse(message));
  for (std::size_t size = 1; size < message.size(); ++size) {
    EXPECT_FALSE(parse(message.substr(0, size))) << size;
  }
}

TEST(TfExample, NoBytesAreEverReadPastTheEnd) {
  // Under the address sanitizer this is the test; elsewhere it must at least return.
  const std::string message = emnist_proto(some_emnist(1)[0]).substr(0, 300);
  Stream stream({.seed = 1, .purpose = Purpose::test});
  for (int i = 0; i < 20000; ++i) {
    std::string broken = message.substr(0, stream.below(message.size()));
    for (int k = 0; k < 3 && !broken.empty(); ++k) {
      broken[stream.below(broken.size())] = char(stream.bits());
    }
    parse(broken);
  }
}

TEST(TfExample, AHugeLengthIsMalformed) {
  EXPECT_FALSE(parse(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)));
  EXPECT_FALSE(parse(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12)));
  EXPECT_FALSE(parse(std::string("\x0b", 1)));  // a group, which nothing here uses
}

}  // namespace
}  // namespace fedep
