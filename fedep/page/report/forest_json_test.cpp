#include "fedep/page/report/forest_json.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(ForestJson, HasNamesNumbersAndTexts) {
  const Json json =
      forest_json(ForestFigure{.title = "Odds ratios",
                               .note = "95 % intervals",
                               .axis = "odds ratio",
                               .scale = EffectScale::ratio,
                               .rows = {{.name = "<b>age</b>",
                                         .estimate = std::log(2.0),
                                         .interval = Bounds{std::log(1.0), std::log(4.0)}},
                                        {.name = "sex=f vs m", .estimate = 0, .group = "icu"}}});
  EXPECT_EQ(json["axis"], "odds ratio");
  EXPECT_TRUE(json["ratio"].get<bool>());
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["name"], "<b>age</b>");
  EXPECT_DOUBLE_EQ(json["rows"][0]["estimate"].get<double>(), std::log(2.0));
  EXPECT_DOUBLE_EQ(json["rows"][0]["high"].get<double>(), std::log(4.0));
  EXPECT_EQ(json["rows"][0]["text"], "2.00 (1.00 to 4.00)");
  EXPECT_EQ(json["rows"][1]["group"], "icu");
  EXPECT_TRUE(json["rows"][1]["low"].is_null());
  EXPECT_EQ(json["rows"][1]["text"], "1.00");
}

TEST(ForestJson, DifferencesStayAsTheyAre) {
  const Json json = forest_json(
      ForestFigure{.title = "Days",
                   .scale = EffectScale::difference,
                   .rows = {{.name = "age", .estimate = -2, .interval = Bounds{-3, -1}}}});
  EXPECT_FALSE(json["ratio"].get<bool>());
  EXPECT_EQ(json["rows"][0]["text"], "-2.0 (-3.0 to -1.0)");
}

TEST(ForestJson, WhatIsNotFiniteIsNotDrawn) {
  const Json json = forest_json(
      ForestFigure{.title = "",
                   .rows = {{.name = "a", .estimate = NAN},
                            {.name = "b", .estimate = 1, .interval = Bounds{-INFINITY, 2}}}});
  EXPECT_TRUE(json["rows"][0]["estimate"].is_null());
  EXPECT_EQ(json["rows"][0]["text"], "–");
  EXPECT_TRUE(json["rows"][1]["low"].is_null());
  EXPECT_TRUE(forest_json({}).is_null());
}

}  // namespace
}  // namespace fedep
