#include "app/text_table.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(TextTable, AlignsCharactersAndNotBytes) {
  EXPECT_EQ(text_table({{"run", "nll", "n"}, {"ü", "1 ± 2", "10"}, {"a long one", "3", ""}}),
            "run           nll   n\n"
            "ü           1 ± 2  10\n"
            "a long one      3    \n");
}

TEST(TextTable, GivesSignsOfEastAsiaTwoColumns) {
  EXPECT_EQ(text_table({{"run", "값"}, {"東京", "1"}, {"ürün", "10"}}),
            "run   값\n"
            "東京   1\n"
            "ürün  10\n");
}

TEST(TextTable, GoesOnInBlocksThatBeginWithTheFirstColumn) {
  const TextLines lines{{"run", "one", "two", "three"}, {"a", "1", "2", "3"}};
  EXPECT_EQ(text_table(lines, 13),
            "run  one  two\n"
            "a      1    2\n"
            "\n"
            "run  three\n"
            "a        3\n");
  EXPECT_EQ(text_table(lines, 12),
            "run  one\na      1\n\nrun  two\na      2\n\nrun  three\na        3\n");
  EXPECT_EQ(text_table(lines, 1), text_table(lines, 12));  // a column at least
}

TEST(TextTable, LeavesOtherColumnsRoomBesideALongFirstOne) {
  const std::string name(20, 'n');
  const TextLines lines{{name, "one", "two", "3"}};  // 5, 10 and 13 characters beside the name
  EXPECT_EQ(text_table(lines, 20), name + "  one  two\n\n" + name + "  3\n");
  EXPECT_EQ(text_table(lines, 26), name + "  one  two  3\n");
}

TEST(TextTable, OfOneColumnHasNoSpacesAtItsEnds) {
  EXPECT_EQ(text_table({{"settings"}, {"a"}}), "settings\na\n");
  EXPECT_EQ(text_table({}), "");
}

}  // namespace
}  // namespace fedep
