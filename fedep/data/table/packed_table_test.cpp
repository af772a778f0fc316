#include "fedep/data/table/packed_table.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(WordList, AWordKeepsItsNumberHoweverManyCome) {
  constexpr std::uint32_t kMany = 5000;
  WordList words;
  EXPECT_EQ(words.find(""), WordList::kNone);
  for (int again = 0; again < 2; ++again) {
    for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_EQ(words.add("word " + std::to_string(i)), i);
  }
  EXPECT_EQ(words.size(), kMany);
  EXPECT_EQ(words[17], "word 17");
  EXPECT_EQ(words.find("word 4999"), 4999u);
  EXPECT_EQ(words.find("word 5000"), WordList::kNone);
}

TEST(WordList, IsEmptyOnceItsWordsAreTaken) {
  WordList words;
  words.add("north");
  words.add("");
  EXPECT_EQ(words.take(), (std::vector<std::string>{"north", ""}));
  EXPECT_EQ(words.size(), 0u);
  EXPECT_EQ(words.add("south"), 0u);
}

// Blocks have fewer rows the more columns there are, down to one.
TEST(ColumnBlocks, EveryValueStaysWhereItCame) {
  for (const std::size_t columns : {1, 3, 2000, 200'000}) {
    const std::size_t rows = columns < 10 ? 200'000 : 150;
    ColumnBlocks<double> blocks(columns);
    std::vector<double> row(columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) row[j] = double(i) + 1e-6 * double(j);
      blocks.add(row);
    }
    ASSERT_EQ(blocks.size(), rows);
    const double last = blocks.at(rows - 1, columns - 1);
    EXPECT_EQ(last, double(rows - 1) + 1e-6 * double(columns - 1));
    bool same = true;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        same = same && blocks.at(i, j) == double(i) + 1e-6 * double(j);
      }
    }
    EXPECT_TRUE(same) << columns;
    const ColumnBlocks<float> halves(
        std::move(blocks), [](double x, std::size_t j) { return float(x) / 2 + float(j); });
    ASSERT_EQ(halves.size(), rows);
    EXPECT_EQ(halves.at(rows - 1, columns - 1), float(last) / 2 + float(columns - 1));
    EXPECT_EQ(halves.at(0, 0), 0.f);
  }
}

TEST(PackedTable, ScaledNumbersAreThoseThatEncodeMakes) {
  TableSpec spec;
  spec.numbers = {"age", "weight"};
  PackedTable table(spec);
  std::vector<TableRow> rows = {{{61, 80.5}, {}}, {{std::nan(""), 70}, {}}, {{40, 1e9}, {}}};
  for (const TableRow& row : rows) table.add(0, {.features = row, .label = {}, .group = {}});
  table.forget_number(0, 1);
  rows[0].numbers[1] = std::nan("");
  const TableScale scale{{{50, 10}, {75, 8, true, 0, 300}}, {}};
  table.scale_numbers(scale.numbers);
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::vector<float> features;
    encode(rows[i], scale, features);
    ScaledRow packed;
    table.read_row(i, packed);
    const ScaledRow read = scaled_row(rows[i], scale);
    for (std::size_t j = 0; j < 2; ++j) {
      const float scaled = table.scaled(i, j);
      EXPECT_EQ(std::isnan(scaled) ? 0.f : scaled, features[j]) << i;
      EXPECT_EQ(std::isnan(scaled), std::isnan(read.numbers[j])) << i;
      EXPECT_EQ(std::isnan(scaled), std::isnan(packed.numbers[j])) << i;
    }
  }
}

}  // namespace
}  // namespace fedep
