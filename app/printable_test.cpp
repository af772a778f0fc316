#include "app/printable.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(Printable, TextStaysAsItIs) {
  for (const std::string text : {"", "accuracy 0.5", "Zürich – ◇ 病院 😀", "a\\b"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(Printable, WhatATerminalWouldObeyIsAnEscape) {
  EXPECT_EQ(printable("\x1b[31mred\a\r\x7f"), "\\x1b[31mred\\x07\\x0d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // the same command in one character
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");  // right to left from here
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, LineBreaksAndTabsStayOnlyInLines) {
  EXPECT_EQ(printable_lines("a\tb\nc\r\n"), "a\tb\nc\\x0d\n");
  EXPECT_EQ(printable("a\tb\n"), "a\\x09b\\x0a");
}

TEST(Printable, BytesThatAreNotUtf8AreEscapes) {
  EXPECT_EQ(printable("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");           // also '/' in two bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut off
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
}

}  // namespace
}  // namespace fedep
