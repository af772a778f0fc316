#include "fedep/data/table/unlike_rows.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedep/data/table/tabular.h"

namespace fedep {
namespace {

using Found = std::vector<Unlike>;

// Ages 20 to 79, sodium 130 to 140, one row in 60 with a disease, a year that does not vary.
TableFeatures wards(ColumnScaling scale = ColumnScaling::pooled) {
  std::string text = "ward,died,age,sodium,disease,year,unit\n";
  for (int i = 0; i < 240; ++i) {
    text += fmt::format("{},{},{},{},{},2015,{}\n", i % 3 ? "A" : "B", i % 2 ? "yes" : "no",
                        20 + i % 60, 130 + i % 11, int(i % 60 == 7), i % 5 ? "ICU" : "CCU");
  }
  const TableSpec spec{.client_column = "ward",
                       .label_column = "died",
                       .positive = {"yes"},
                       .numbers = {"age", "sodium", "disease", "year"},
                       .categories = {"unit"}};
  const auto data = tabular_dataset(parse_delimited(text, kCsv, "wards.csv"), spec,
                                    {.name = "wards", .scale = scale});
  return *data->info().table;
}

Found unlike(const TableFeatures& features, const std::string& row) {
  const DelimitedTable table =
      parse_delimited("age,sodium,disease,year,unit\n" + row + "\n", kCsv, "new.csv");
  return unlike_rows(table, encode_table(table, features), features).at(0);
}

TEST(UnlikeRows, NameTheColumnThatMakesThemSo) {
  const TableFeatures features = wards();
  EXPECT_EQ(unlike(features, "50,135,0,2015,ICU"), Found());
  EXPECT_EQ(unlike(features, "300,135,0,2015,ICU"), (Found{{"age", UnlikeKind::far}}));
  EXPECT_EQ(unlike(features, "50,135,0,2015,Ward 9"), (Found{{"unit", UnlikeKind::category}}));
  EXPECT_EQ(unlike(features, "50,135,0,2016,ICU"), (Found{{"year", UnlikeKind::constant}}));
  EXPECT_EQ(unlike(features, "50,1350,0,2016,Ward 9"), (Found{{"sodium", UnlikeKind::far},
                                                              {"year", UnlikeKind::constant},
                                                              {"unit", UnlikeKind::category}}));
}

TEST(UnlikeRows, WhatIsMissingIsNotUnlike) { EXPECT_EQ(unlike(wards(), "NA,,?,,"), Found()); }

// 1 is 7.7 deviations away, and every sixtieth row of training has it.
TEST(UnlikeRows, ARareDiseaseIsNotFarByItself) {
  TableFeatures features = wards();
  features.far = 1e9;
  EXPECT_EQ(unlike(features, "50,135,1,2015,ICU"), Found());
  EXPECT_EQ(unlike(features, "50,135,2,2015,ICU"), (Found{{"disease", UnlikeKind::far}}));
}

// The fewest columns without which the rest would be near.
TEST(UnlikeRows, ColumnsThatAreFarTogetherAreTheFurthestOnes) {
  TableFeatures features = wards();
  const double age = features.scale.numbers[0].mean + 4 * features.scale.numbers[0].deviation;
  const double sodium = features.scale.numbers[1].mean - 3 * features.scale.numbers[1].deviation;
  const std::string row =
      fmt::format("{},{},,2015,", age, sodium);  // squares 16 and 9, of 5 features
  features.far = 26.0 / 5;
  EXPECT_EQ(unlike(features, row), Found());
  features.far = 10.0 / 5;
  EXPECT_EQ(unlike(features, row), (Found{{"age", UnlikeKind::together}}));
  features.far = 8.0 / 5;
  EXPECT_EQ(unlike(features, row),
            (Found{{"age", UnlikeKind::together}, {"sodium", UnlikeKind::together}}));
}

TEST(UnlikeRows, NumbersThatAreNotScaledHaveNoMeanToBeFarFrom) {
  TableFeatures features = wards(ColumnScaling::none);
  features.far = 1e9;
  EXPECT_EQ(unlike(features, "300,135,0,2015,ICU"), Found());
}

TEST(UnlikeRows, WhatRobustScalingTakesAsMissingIsSaid) {
  const TableFeatures features = wards(ColumnScaling::robust);
  EXPECT_EQ(unlike(features, "1e6,135,0,2015,ICU"), (Found{{"age", UnlikeKind::limits}}));
}

}  // namespace
}  // namespace fedep
