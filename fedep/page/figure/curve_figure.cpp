#include "fedep/page/figure/curve_figure.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/page/figure/frame.h"
#include "fedep/page/figure/svg.h"

namespace fedep {
namespace {

struct LineStyle {
  std::string_view color, dash;
};

// Neighbours differ in colour and in dash, so a grey print tells them apart too. The page has the
// same list.
LineStyle line_style(std::size_t i) {
  constexpr std::array kColors{kBlue, kVermilion, kGreen, kPurple, kOrange, kSkyBlue, kInk};
  constexpr std::array<std::string_view, 6> kDashes{"", "8 4", "2 4", "10 4 2 4", "14 5", "5 3"};
  return {kColors[i % kColors.size()], kDashes[(i + i / kColors.size()) % kDashes.size()]};
}

// Nine in ten values and what lies near them. One run that leaves the picture must not flatten all
// others.
AxisRange shown_range(const CurveFigure& figure) {
  std::vector<double> values;
  for (const FigureCurve& curve : figure.curves) {
    for (const std::vector<double>* series : {&curve.mean, &curve.marginal}) {
      for (const double value : *series) {
        if (std::isfinite(value)) values.push_back(value * figure.scale);
      }
    }
  }
  if (values.empty()) {
    throw InputError(
        fmt::format("draw_curves: a curve of {} must have a point, but none has", figure.title));
  }
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    return values[std::size_t(q * double(values.size() - 1))];
  };
  AxisRange range{values.front(), values.back()};
  const double middle = quantile(0.95) - quantile(0.05);
  if (middle > 0) {
    range.high = std::min(range.high, quantile(0.95) + 2 * middle);
    range.low = std::max(range.low, quantile(0.05) - 2 * middle);
  }
  // Differences that no tick's label shows are none.
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const double pad =
      range.size() > 1e-6 * largest ? 0.06 * range.size() : std::max(1e-6, 0.1 * largest);
  return range.padded(pad);
}

// The rounds that have a value.
std::vector<Pixel> line_of(const Frame& frame, std::span<const double> values, double scale) {
  std::vector<Pixel> points;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) points.push_back(frame.at(double(i + 1), values[i] * scale));
  }
  return points;
}

void draw_marginal(Svg& svg, const std::vector<Pixel>& points, std::string_view color) {
  constexpr std::size_t kMostDiamonds = 40;  // more would be a band
  if (points.size() > 1) svg.polyline(points, {.stroke = color, .width = 1.4, .dash = "1 3"});
  if (points.size() > kMostDiamonds) return;
  for (const Pixel& p : points) {
    const std::array<Pixel, 4> diamond{
        {{p.x, p.y - 5}, {p.x + 5, p.y}, {p.x, p.y + 5}, {p.x - 5, p.y}}};
    svg.polygon(diamond, {.fill = "#ffffff", .stroke = color, .width = 1.4});
  }
}

void draw_band(Svg& svg, const Frame& frame, const FigureCurve& curve, double scale,
               std::string_view color) {
  std::vector<Pixel> upper, lower;
  for (std::size_t i = 0; i < std::min(curve.mean.size(), curve.deviation.size()); ++i) {
    const double mean = curve.mean[i] * scale, two = 2 * curve.deviation[i] * scale;
    if (!std::isfinite(mean) || !std::isfinite(two)) continue;
    upper.push_back(frame.at(double(i + 1), mean + two));
    lower.push_back(frame.at(double(i + 1), mean - two));
  }
  if (upper.empty()) return;
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  svg.polygon(upper, {.fill = color, .opacity = 0.18});
}

void draw_axes(Svg& svg, const Frame& frame) {
  for (const double y : ticks(frame.y, tick_spacing(frame.y.size(), 6))) {
    const Pixel foot = frame.at(frame.x.low, y);
    svg.line(foot, {frame.box.right(), foot.y}, {.stroke = kGrid});
    svg.text({foot.x - 9, foot.y + 5}, tick_label(y), {.size = 13, .anchor = Anchor::end});
  }
  for (const double x : ticks(frame.x, std::max(1.0, tick_spacing(frame.x.size(), 6)))) {
    const Pixel foot = frame.at(x, frame.y.low);
    svg.line(foot, {foot.x, foot.y + 5}, {.stroke = kAxis});
    svg.text({foot.x, foot.y + 20}, tick_label(x), {.size = 13, .anchor = Anchor::middle});
  }
  svg.line({frame.box.left, frame.box.bottom()}, {frame.box.right(), frame.box.bottom()},
           {.stroke = kAxis});
}

// Rows of names under the title; gives where the last one ends.
double draw_legend(Svg& svg, const CurveFigure& figure, double width) {
  double x = 26, y = 62;
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const double entry = 62 + 7.4 * double(figure.curves[i].name.size());
    if (x > 26 && x + entry > width - 10) {
      x = 26;
      y += 22;
    }
    const LineStyle style = line_style(i);
    svg.line({x, y}, {x + 32, y}, {.stroke = style.color, .width = 2.4, .dash = style.dash});
    svg.text({x + 40, y + 5}, figure.curves[i].name, {.size = 14, .fill = kInk});
    x += entry;
  }
  return y;
}

}  // namespace

std::string draw_curves(const CurveFigure& figure) {
  const AxisRange y = shown_range(figure);
  std::size_t rounds = 2;
  for (const FigureCurve& curve : figure.curves) rounds = std::max(rounds, curve.mean.size());

  const double width = 760, plot_height = 320;
  Svg measured(width, 10, figure.title);  // the legend's rows decide the height
  const double top = draw_legend(measured, figure, width) + 24;
  const double height = top + plot_height + 56;
  Svg page(width, height, figure.title);
  draw_legend(page, figure, width);
  page.text({26, 34}, figure.title, {.size = 18, .fill = kInk, .bold = true});
  page.text({width - 26, 34}, figure.note, {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  const Frame frame{{78, top, width - 78 - 28, plot_height}, {0, double(rounds)}, y};
  draw_axes(page, frame);
  for (const std::int64_t round : figure.switches) {
    if (round <= 0 || round >= std::int64_t(rounds)) continue;
    const Pixel foot = frame.at(double(round), y.low);
    page.line(foot, {foot.x, top}, {.stroke = kAxis, .dash = "3 4"});
    page.text({foot.x + 5, top + 12}, "burn-in ends", {.size = 12, .fill = kGrey});
  }
  page.begin_clip(frame.box);
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    draw_band(page, frame, figure.curves[i], figure.scale, line_style(i).color);
  }
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const LineStyle style = line_style(i);
    const std::vector<Pixel> points = line_of(frame, figure.curves[i].mean, figure.scale);
    if (points.empty()) continue;
    page.polyline(points, {.stroke = style.color, .width = 2, .dash = style.dash});
    if (points.size() == 1) page.circle(points[0], 4, {.fill = style.color});
  }
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    draw_marginal(page, line_of(frame, figure.curves[i].marginal, figure.scale),
                  line_style(i).color);
  }
  page.end_clip();
  page.text({frame.box.left + frame.box.width / 2, height - 14}, "round",
            {.size = 14, .anchor = Anchor::middle});
  page.text({24, top + plot_height / 2}, figure.y_label,
            {.size = 14, .anchor = Anchor::middle, .rotate = -90});
  return page.str();
}

}  // namespace fedep
