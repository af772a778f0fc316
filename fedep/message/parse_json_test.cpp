#include "fedep/message/parse_json.h"

#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using Json = nlohmann::ordered_json;

TEST(ParseJson, GivesTheTreeThatNlohmannGives) {
  for (const std::string text :
       {R"({"b":1,"a":[1,-2,3.5,true,null,"x\"é",{},[]],"c":{"d":{"b":[[1]]}}})", "[]", "3",
        "\"x\"", " {\n} "}) {
    EXPECT_EQ(parse_json(text), Json::parse(text)) << text;
    EXPECT_EQ(parse_json(text).dump(), Json::parse(text).dump()) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNone) {
  for (const std::string text :
       {"", "{", "{\"a\":1,}", "[1] 2", R"({"a":1,"a":2})", R"({"b":{"a":1,"a":1}})"}) {
    EXPECT_THROW(parse_json(text), InputError) << text;
    EXPECT_FALSE(find_json(text)) << text;
  }
  EXPECT_FALSE(find_json(std::string(300'000, '[') + std::string(300'000, ']')));
}

// Quadratic, this would take minutes.
TEST(ParseJson, ReadsAHundredThousandNamesAtOnce) {
  Json object = Json::object();
  for (int i = 0; i < 100'000; ++i) append_member(object, "column number " + std::to_string(i), i);
  EXPECT_EQ(parse_json(object.dump()), object);
}

}  // namespace
}  // namespace fedep
