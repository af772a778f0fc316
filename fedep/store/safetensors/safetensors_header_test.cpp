#include "fedep/store/safetensors/safetensors_header.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep::safetensors {
namespace {

using testing::HasSubstr;

// What a header before so many bytes of data is refused with, less the file every refusal starts
// with.
std::string refusal(const std::string& text, std::uint64_t data_size = 0) {
  const std::string what =
      message_of<InputError>([&] { checked_layout("x", parse_header("x", text), data_size); });
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  if (what.empty()) return "";
  EXPECT_TRUE(what.starts_with("x: ")) << what;
  return what.substr(3);
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape, int begin,
                  int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype,
                     shape, begin, end);
}

TEST(SafetensorsHeader, IsReadAsItWasWritten) {
  using Shape = std::vector<std::int64_t>;
  Header header = {{{"w", 3, Shape{2, 3}, {{0, 24}}}, {"ä", 0, Shape(), {{24, 25}}}},
                   {{"a", "\"\n"}}};
  for (const bool checksums : {false, true}) {
    if (checksums) {
      for (const Entry& e : header.entries) header.metadata[checksum_key(e.name)] = "0";
      header.metadata[checksum_key(kMetadataKey)] = header_checksum(header);
    }
    const std::string text = header_text("x", header);
    EXPECT_EQ(text.size() % 8, 0u);
    const Header came = parse_header("x", text);
    EXPECT_EQ(came.metadata, header.metadata);
    ASSERT_EQ(came.entries.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(came.entries[i].name, header.entries[i].name);
      EXPECT_EQ(came.entries[i].type, header.entries[i].type);
      EXPECT_EQ(came.entries[i].shape, header.entries[i].shape);
      EXPECT_EQ(came.entries[i].offsets, header.entries[i].offsets);
    }
  }
}

TEST(SafetensorsHeader, RefusesWhatTheFormatDoesNotKnow) {
  EXPECT_EQ(refusal(""), "header must start with {, but does not");
  EXPECT_EQ(refusal(" {}"), "header must start with {, but does not");
  EXPECT_EQ(refusal("{"), "header must be JSON, but is not at byte 10");
  EXPECT_THAT(refusal("{}x"), HasSubstr("header must be JSON"));
  EXPECT_EQ(refusal(std::string("{}\0garbage", 10)), "header must be JSON, but is not at byte 10");
  EXPECT_THAT(refusal("{\"\xff\":1}"), HasSubstr("header must be JSON"));
  EXPECT_EQ(refusal(R"({"a":1})"), "a in its header must be an object, but is number 1");
  EXPECT_EQ(refusal(R"({"a":[]})"), "a in its header must be an object, but is an array");
  EXPECT_EQ(refusal(R"({"__metadata__":{"a":{}}})"),
            "header must be as safetensors has it, but a of __metadata__ has an object");
  for (const char* inner :
       {R"("dtype":1)", R"("shape":{})", R"("shape":[-1])", R"("shape":[1.5])", R"("shape":[[1]])",
        R"("shape":[9223372036854775808])", R"("shape":[99999999999999999999])", R"("shape":null)",
        R"("data_offsets":[0,1,2])", R"("data_offsets":["0"])", R"("data_offsets":true)",
        R"("more":"x")", R"("more":{})", R"("more":[])"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"a":{{{}}}}})", inner)),
                HasSubstr("header must be as safetensors has it, but"))
        << inner;
  }
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[0]}})"),
            "tensor a must have dtype, shape and two data_offsets, but has not");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}})"),
            "tensor a must have dtype, shape and two data_offsets, but has not");
  EXPECT_EQ(refusal("{" + entry("a", "BF16", "[1]", 0, 2) + "}", 2),
            "dtype of tensor a must be one of U8, I32, I64, F32, F64, but is BF16");
}

TEST(SafetensorsHeader, RefusesKeysThatComeTwice) {
  const std::string a = entry("a", "U8", "[0]", 0, 0);
  EXPECT_EQ(refusal("{" + a + "," + a + "}"), "keys of its header must differ, but a comes twice");
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":"1","k":"2"}})"), HasSubstr("k comes twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"U8"}})"), HasSubstr("dtype comes twice"));
}

TEST(SafetensorsHeader, RefusesDataThatOverlapLeaveHolesOrDoNotFit) {
  const auto two = [&](int begin, int end) {
    return "{" + entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[4]", begin, end) + "}";
  };
  EXPECT_EQ(refusal(two(4, 8), 8), "");
  EXPECT_EQ(refusal(two(3, 7), 7), "data of tensor b must begin at 4, but begin at 3");
  EXPECT_EQ(refusal(two(5, 9), 9), "data of tensor b must begin at 4, but begin at 5");
  EXPECT_EQ(refusal(two(4, 9), 9), "tensor b must have 4 bytes by its shape, but has 5");
  EXPECT_EQ(refusal(two(4, 8), 7), "data of tensor b must end in [4, 7], but end at 8");
  EXPECT_EQ(refusal(two(4, 3), 8), "data of tensor b must end in [4, 8], but end at 3");
  EXPECT_EQ(refusal(two(4, 8), 9), "tensors must cover all 9 bytes of data, but cover 8");
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775807,2,2]",
                            "[2305843009213693952,8]", "[4611686018427387904,4,0]"}) {
    EXPECT_EQ(refusal("{" + entry("a", "F64", shape, 0, 0) + "}"),
              "tensor a must have too many bytes by its shape, but has 0");
  }
}

}  // namespace
}  // namespace fedep::safetensors
