#include "fedep/page/figure/curve_figure.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/page/figure/frame.h"
#include "fedep/page/test_text.h"

namespace fedep {
namespace {

CurveFigure figure() {
  return {
      .title = "Accuracy",
      .note = "five seeds",
      .y_label = "accuracy, %",
      .scale = 100,
      .curves = {{"fed_avg", {0.1, 0.2, 0.3}, {0.01, 0.01, 0.01}}, {"a < b", {0.2, NAN, 0.4}, {}}},
      .switches = {1}};
}

TEST(CurveFigures, HaveALinePerCurveARegionPerSpreadAndThePhaseChange) {
  const std::string svg = draw_curves(figure());
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  EXPECT_EQ(count(svg, "<polygon"), 1u);
  EXPECT_EQ(count(svg, "burn-in ends"), 1u);
  for (const auto* text :
       {">Accuracy<", ">accuracy, %<", ">fed_avg<", ">a &lt; b<", ">round<", ">20<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

// The axis goes from round 0 at x = 78 to the last one at 732; the first score is after one round.
TEST(CurveFigures, HaveTheLastRoundAtTheRightEdgeAndNothingBeforeTheFirst) {
  CurveFigure two = figure();
  two.curves = {{"a", {0.0, 1.0}, {}}};
  const std::string svg = draw_curves(two);
  EXPECT_EQ(count(svg, "points=\"405,"), 1u);
  EXPECT_EQ(count(svg, " 732,"), 1u);
}

TEST(TickSpacing, IsARoundNumberThatLeavesNoMoreTicksThanAskedFor) {
  EXPECT_DOUBLE_EQ(tick_spacing(6, 6), 1);
  EXPECT_DOUBLE_EQ(tick_spacing(7, 6), 2);
  EXPECT_DOUBLE_EQ(tick_spacing(13, 6), 5);
  EXPECT_DOUBLE_EQ(tick_spacing(0.4, 6), 0.1);
  for (const double size : {1e-3, 0.7, 3.0, 41.0, 1500.0}) {
    EXPECT_GE(tick_spacing(size, 6) * 6, size);
    EXPECT_LT(tick_spacing(size, 6) * 6, 2.6 * size);  // from 2 to 5
  }
}

// The region's polygon passes two standard deviations above and below the line.
TEST(CurveFigures, ShadeTwoStandardDeviations) {
  CurveFigure plain = figure();
  plain.curves = {{"a", {0.0, 1.0}, {}}, {"b", {0.5, 0.5}, {0.25, 0.25}}};
  const std::string svg = draw_curves(plain);
  const auto ys = [&](std::string_view element, std::size_t nth) {
    std::size_t at = svg.find(element);
    while (nth-- > 0) at = svg.find(element, at + 1);
    const std::size_t begin = svg.find("points=\"", at) + 8;
    std::string points = svg.substr(begin, svg.find('"', begin) - begin);
    std::vector<double> out;
    for (std::size_t comma = points.find(','); comma != points.npos;
         comma = points.find(',', comma + 1)) {
      out.push_back(std::stod(points.substr(comma + 1)));
    }
    return out;
  };
  const std::vector<double> line = ys("<polyline", 0), region = ys("<polygon", 0);
  ASSERT_EQ(line.size(), 2u);
  ASSERT_EQ(region.size(), 4u);
  // b's mean + 2 * 0.25 is where a ends, its mean - 2 * 0.25 where a begins.
  EXPECT_NEAR(region[0], line[1], 0.02);
  EXPECT_NEAR(region[3], line[0], 0.02);
}

TEST(CurveFigures, HaveADiamondForEveryMarginalisedScore) {
  CurveFigure marginal = figure();
  marginal.curves = {{"a", {0.1, 0.2, 0.3, 0.4}, {}, {NAN, 0.3, NAN, 0.9}}};
  std::string svg = draw_curves(marginal);
  EXPECT_EQ(count(svg, "<polygon"), 2u);
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  EXPECT_NE(svg.find(">80<"), std::string::npos);  // the axis has room for them
  marginal.curves[0].marginal = {NAN, NAN, NAN, 0.9};
  svg = draw_curves(marginal);
  EXPECT_EQ(count(svg, "<polygon"), 1u);
  EXPECT_EQ(count(svg, "<polyline"), 1u);
}

TEST(CurveFigures, AreDrawnOfOnePointAndOfEqualValues) {
  CurveFigure one = figure();
  one.curves = {{"a", {0.5}, {}}};
  EXPECT_EQ(count(draw_curves(one), "<circle"), 1u);
  one.curves = {{"a", {0.5, 0.5, 0.5}, {0, 0, 0}}};
  EXPECT_EQ(count(draw_curves(one), "<polyline"), 1u);
  one.curves = {{"a", {0, 0}, {}}};
  EXPECT_EQ(count(draw_curves(one), "<polyline"), 1u);
}

TEST(CurveFigures, GrowWithTheirLegend) {
  CurveFigure many = figure();
  for (int i = 0; i < 30; ++i) many.curves.push_back({"a run with a long name", {0.1, 0.2}, {}});
  EXPECT_EQ(count(draw_curves(many), "<polyline"), 32u);
  EXPECT_GT(draw_curves(many).size(), draw_curves(figure()).size());
}

TEST(CurveFigures, AreRefusedWithoutAPoint) {
  CurveFigure none = figure();
  none.curves = {{"a", {NAN, NAN}, {}}};
  EXPECT_THROW(draw_curves(none), InputError);
  none.curves.clear();
  EXPECT_THROW(draw_curves(none), InputError);
}

}  // namespace
}  // namespace fedep
