#include "fedep/page/figure/forest_figure.h"

#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/page/figure/text_lines.h"
#include "fedep/page/test_text.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ForestRow row(const std::string& name, double estimate, double half) {
  return {name, estimate, {{estimate - half, estimate + half}}};
}

ForestFigure figure(std::vector<ForestRow> rows, EffectScale scale = EffectScale::ratio) {
  return {.title = "Odds ratios", .axis = "odds ratio", .scale = scale, .rows = std::move(rows)};
}

struct Square {
  double x, y;  // of its middle
};

// Squares stand for estimates, and nothing else is as large as they are.
std::vector<Square> squares(const std::string& svg) {
  static const std::regex kSquare(R"re(<rect x="([\d.-]+)" y="([\d.-]+)" width="9" height="9")re");
  std::vector<Square> out;
  for (auto i = std::sregex_iterator(svg.begin(), svg.end(), kSquare); i != std::sregex_iterator();
       ++i) {
    out.push_back({std::stod((*i)[1]) + 4.5, std::stod((*i)[2]) + 4.5});
  }
  return out;
}

TEST(ForestFigures, EqualRatiosAreEqualDistances) {
  const auto found = squares(draw_forest(
      figure({row("a", std::log(0.5), 0.1), row("b", 0, 0.1), row("c", std::log(2.0), 0.1)})));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found[1].x - found[0].x, found[2].x - found[1].x, 0.02);
  EXPECT_LT(found[0].x, found[1].x);
  EXPECT_LT(found[0].y, found[1].y);  // in their order
}

TEST(ForestFigures, RatiosAreWrittenAsRatiosAndDifferencesAsTheyAre) {
  const std::vector<ForestRow> rows{row("age", std::log(1.5), 0.1)};
  EXPECT_THAT(draw_forest(figure(rows)), HasSubstr(">1.50<"));
  EXPECT_THAT(draw_forest(figure(rows)), HasSubstr(">1.36<"));  // 1.5 exp(-0.1)
  EXPECT_THAT(draw_forest(figure(rows, EffectScale::difference)), HasSubstr(">0.41<"));
}

TEST(ForestFigures, AnIntervalBeyondTheAxisEndsInAnArrow) {
  std::vector<ForestRow> rows{row("a", 0.5, 0.1), row("b", -0.4, 0.1), row("c", 0.3, 0.1)};
  EXPECT_EQ(count(draw_forest(figure(rows)), "<polygon"), 0u);
  rows.push_back(row("separated", 0.2, 40));
  const std::string svg = draw_forest(figure(rows));
  EXPECT_EQ(count(svg, "<polygon"), 2u);
  EXPECT_EQ(squares(svg).size(), 4u);
  EXPECT_GT(squares(svg)[0].x - squares(svg)[1].x, 20);  // the others are told apart still
}

TEST(ForestFigures, AnEstimateBeyondTheAxisIsAnArrow) {
  const std::string svg = draw_forest(figure({row("a", 0.5, 0.1), row("b", -0.4, 0.1), {"c", 90}}));
  EXPECT_EQ(squares(svg).size(), 2u);
  EXPECT_EQ(count(svg, "<polygon"), 1u);
  EXPECT_THAT(svg, HasSubstr(">1.22e+39<"));
}

TEST(ForestFigures, NothingIsDrawnOutsideThePicture) {
  for (const double half : {1e-9, 1.0, 50.0, 1e4, 1e300}) {
    const std::string svg =
        draw_forest(figure({row("a", half, half), row("b", -half / 3, half), {"c", 0}}));
    for (const Square& square : squares(svg)) {
      EXPECT_GT(square.x, 100) << half;
      EXPECT_LT(square.x, 740) << half;
    }
  }
}

TEST(ForestFigures, GroupsArePanelsWithOneAxis) {
  ForestFigure two = figure({row("age", 0.5, 0.1), row("age", 0.5, 0.1)});
  two.rows[0].group = "died < alive";
  two.rows[1].group = "moved";
  const std::string svg = draw_forest(two);
  EXPECT_THAT(svg, HasSubstr(">died &lt; alive<"));
  EXPECT_THAT(svg, HasSubstr(">moved<"));
  EXPECT_EQ(squares(svg)[0].x, squares(svg)[1].x);
}

TEST(ForestFigures, NamesCannotLeaveTheirText) {
  const std::string svg = draw_forest(figure({row("</text><script>alert(1)</script>", 0, 1)}));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(ForestFigures, AreRefusedWithoutRowsOrWithNumbersThatAreNone) {
  EXPECT_THROW(draw_forest(figure({})), InputError);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(draw_forest(figure({{"a", nan}})), InputError);
  EXPECT_THROW(draw_forest(figure({{"a", 0, {{0, INFINITY}}}})), InputError);
}

TEST(EffectTexts, HaveTheDigitsThatTheIntervalLeaves) {
  EXPECT_EQ(effect_text(1.0023, {{1.0003, 1.0043}}, EffectScale::ratio),
            (EffectText{"1.0023", "1.0003", "1.0043"}));
  EXPECT_EQ(effect_text(2.0, {{1.2, 3.3}}, EffectScale::ratio),
            (EffectText{"2.00", "1.20", "3.30"}));
  EXPECT_EQ(effect_text(312.4, {{210.6, 414.2}}, EffectScale::difference),
            (EffectText{"312", "211", "414"}));
  EXPECT_EQ(effect_text(-0.001, {{-0.4, 0.4}}, EffectScale::difference),
            (EffectText{"0.00", "-0.40", "0.40"}));
  EXPECT_EQ(effect_text(0.0123456, {}, EffectScale::difference), (EffectText{"0.0123"}));
}

TEST(EffectTexts, WriteNoRatioAsZero) {
  EXPECT_EQ(effect_text(1, {{1e-5, 1e6}}, EffectScale::ratio),
            (EffectText{"1.00", "1e-05", "1e+06"}));
  EXPECT_EQ(effect_text(2e-9, {{1e-9, 3e-9}}, EffectScale::difference),
            (EffectText{"2e-09", "1e-09", "3e-09"}));
  EXPECT_EQ(effect_text(0, {}, EffectScale::difference), (EffectText{"0"}));
}

TEST(TextLines, HoldTheWholeTextWhereTheyMay) {
  EXPECT_THAT(text_lines("one two three", 10, 45, 9), ElementsAre("one two", "three"));
  EXPECT_THAT(text_lines("", 10, 45, 3), ElementsAre(""));
  std::string joined;
  for (const std::string& line : text_lines("ångströmångströmångström", 10, 45, 9)) joined += line;
  EXPECT_EQ(joined, "ångströmångströmångström");
}

TEST(TextLines, StayWithinTheirWidthAndSayThatTextIsLeftOut) {
  const std::string text =
      "a rather long name of a column 体温 that somebody took from a questionnaire";
  for (const double width : {30.0, 60.0, 200.0}) {
    const auto lines = text_lines(text, 13, width, 2);
    ASSERT_LE(lines.size(), 2u);
    for (const std::string& line : lines) EXPECT_LE(text_width(line, 13), width);
    EXPECT_TRUE(lines.back().ends_with("…"));
  }
}

}  // namespace
}  // namespace fedep
