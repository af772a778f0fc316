#include "fedep/page/report/forest_json.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(ForestJson, HasNamesNumbersAndTexts) {
  const Json json = forest_json(CoefficientReport{
      .figure = {.title = "Odds ratios",
                 .note = "95 % intervals",
                 .axis = "odds ratio",
                 .scale = EffectScale::ratio,
                 .rows = {{.name = "<b>age</b>",
                           .estimate = std::log(2.0),
                           .interval = Bounds{std::log(1.0), std::log(4.0)}},
                          {.name = "sex=f vs m", .estimate = 0, .group = "icu"}}}});
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
  const Json json = forest_json(CoefficientReport{
      .figure = {.title = "Days",
                 .scale = EffectScale::difference,
                 .rows = {{.name = "age", .estimate = -2, .interval = Bounds{-3, -1}}}}});
  EXPECT_FALSE(json["ratio"].get<bool>());
  EXPECT_EQ(json["rows"][0]["text"], "-2.0 (-3.0 to -1.0)");
}

TEST(ForestJson, WhatIsNotFiniteIsNotDrawn) {
  const Json json = forest_json(CoefficientReport{
      .figure = {.title = "",
                 .rows = {{.name = "a", .estimate = NAN},
                          {.name = "b", .estimate = 1, .interval = Bounds{-INFINITY, 2}}}}});
  EXPECT_TRUE(json["rows"][0]["estimate"].is_null());
  EXPECT_EQ(json["rows"][0]["text"], "–");
  EXPECT_TRUE(json["rows"][1]["low"].is_null());
  EXPECT_TRUE(forest_json({}).is_null());
}

TEST(ForestJson, HasSpreadsAndSharesBesideTheEffects) {
  const Json json = forest_json(
      CoefficientReport{.figure = {.title = "", .rows = {{.name = "age", .estimate = 1}}},
                        .spreads = {{"hospitals' intercepts", 0.5, Bounds{0.25, 1}},
                                    {"noise", NAN, {}},
                                    {"other", 2, Bounds{0, INFINITY}}},
                        .shares = {{"A", 0.75}, {"prior", 0.25}},
                        .shares_note = "nearly"});
  ASSERT_EQ(json["spreads"].size(), 3u);
  EXPECT_EQ(json["spreads"][0]["text"], "0.50 (0.25 to 1.00)");
  EXPECT_EQ(json["spreads"][1]["text"], "–");
  EXPECT_EQ(json["spreads"][2]["text"], "2.00");
  EXPECT_EQ(json["shares"][0]["name"], "A");
  EXPECT_EQ(json["shares"][1]["share"], 0.25);
  EXPECT_EQ(json["shares_note"], "nearly");
}

}  // namespace
}  // namespace fedep
