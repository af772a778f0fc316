#include "fedep/message/nesting.h"

#include <string>

#include <gtest/gtest.h>

namespace fedep {
namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ShallowJson, IsTheTextUpToTheLimitAndEmptyBeyond) {
  for (const std::string open : {"[", R"({"a":)", R"([{"]":)"}) {
    const std::size_t per = open.size() == 6 ? 2 : 1;
    const std::string good = repeated(open, kMostNesting / per);
    EXPECT_EQ(shallow_json(good), good);
    EXPECT_EQ(shallow_json(good + "["), "");
    EXPECT_EQ(shallow_json(repeated(open, 300'000)), "");
  }
}

TEST(ShallowJson, DoesNotCountBracketsOfStringsNorOnesThatWereClosed) {
  const std::string texts[] = {'"' + repeated("[", 1000) + '"',
                               R"(["\")" + repeated("[", 1000) + "\"]", repeated("[]", 1000),
                               repeated(R"({"a":"\\"})", 1000)};
  for (const std::string& text : texts) EXPECT_EQ(shallow_json(text), text);
}

TEST(DeepToml, NamesTheLineOfAKeyAHeaderAnArrayOrBracesThatGoTooDeep) {
  const std::string key = "a" + repeated(".b", 200'000);
  EXPECT_EQ(deep_toml_line("x = 1\n" + key + " = 1\n"), 2u);
  EXPECT_EQ(deep_toml_line("\n\n[" + key + "]\n"), 3u);
  EXPECT_EQ(deep_toml_line("\n[[" + key + "]]\n"), 2u);
  EXPECT_EQ(deep_toml_line("x = " + repeated("[", 100) + "\n"), 1u);
  EXPECT_EQ(deep_toml_line("x = " + repeated("{a=", 100) + "\n"), 1u);
  EXPECT_EQ(deep_toml_line("'a'" + repeated(" . \"=,\"", 100) + " = 1\n"), 1u);
}

TEST(DeepToml, AddsUpWhatAHeaderAKeyAndItsValueNest) {
  const std::string part = "a" + repeated(".b", 20);
  EXPECT_EQ(deep_toml_line("[" + part + "]\n" + part + " = [" + repeated("[", 10) + "\n"),
            std::nullopt);
  EXPECT_EQ(deep_toml_line("[" + part + "]\n" + part + " = {\n" + part + ".c.d.e.f = 1\n"), 3u);
  EXPECT_EQ(deep_toml_line(repeated("x = [[1.5], [2.5, 3.5]]\n", 500)), std::nullopt);
  EXPECT_EQ(deep_toml_line(repeated("[a.b.c]\nd.e = 1\n", 500)), std::nullopt);
}

TEST(DeepToml, PassesOverStringsAndComments) {
  const std::string deep = "a" + repeated(".b", 100) + repeated("[", 100);
  for (const std::string& text : {"# " + deep, "x = '" + deep + "'", "x = \"\\\"" + deep + "\"",
                                  "x = \"\"\"\n" + deep + "\"\"\"\"\"", "x = '''\n" + deep + "''''",
                                  "x = [" + repeated("1.5, ", 1000) + "]"}) {
    EXPECT_EQ(deep_toml_line(text), std::nullopt) << text.substr(0, 20);
    EXPECT_TRUE(deep_toml_line(text + "\n" + deep)) << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace fedep
