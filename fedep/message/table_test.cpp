#include "fedep/message/table.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedep {
namespace {

struct Fruit {
  std::string_view name;
  int stones;
};
constexpr std::array kFruit{Fruit{"plum", 1}, Fruit{"grape", 3}};

TEST(Table, FindsItsRowsByName) {
  for (const Fruit& row : kFruit) EXPECT_EQ(&find_row("fruit", kFruit, row.name), &row);
}

TEST(Table, SuggestsANameForOneThatItDoesNotHave) {
  try {
    find_row("fruit", kFruit, "grope");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown fruit grope; did you mean grape? known: plum, grape");
  }
}

TEST(Table, NamesItsRowsAsAlternatives) {
  EXPECT_EQ(alternatives(names_of(kFruit)), "plum or grape");
  EXPECT_EQ(alternatives({"a", "b", "c"}), "a, b or c");
  EXPECT_EQ(alternatives({"a"}), "a");
  EXPECT_EQ(alternatives({}), "");
}

}  // namespace
}  // namespace fedep
