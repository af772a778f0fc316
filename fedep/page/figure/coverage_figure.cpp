#include "fedep/page/figure/coverage_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/page/figure/frame.h"
#include "fedep/page/figure/svg.h"

namespace fedep {
namespace {

constexpr std::size_t kMostRows = 40;
constexpr std::array kLevelColors{kOrange, kGreen, kBlue};

struct Row {
  std::string name;
  const CoverageNumbers& numbers;
};

void draw_levels(Svg& svg, const Frame& frame) {
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    const Pixel foot = frame.at(100 * kIntervalLevels[i], 0);
    svg.line(foot, {foot.x, frame.box.top}, {.stroke = kLevelColors[i], .dash = "4 3"});
    svg.text({foot.x, frame.box.top - 8}, fmt::format("{:.0f} %", 100 * kIntervalLevels[i]),
             {.size = 13, .anchor = Anchor::middle, .fill = kLevelColors[i], .bold = true});
  }
  for (const double x : ticks(frame.x, 20)) {
    const Pixel foot = frame.at(x, 0);
    svg.text({foot.x, foot.y + 18}, tick_label(x), {.size = 13, .anchor = Anchor::middle});
  }
  svg.line({frame.box.left, frame.box.bottom()}, {frame.box.right(), frame.box.bottom()},
           {.stroke = kAxis});
}

// Dots, with two standard errors to both sides.
void draw_row(Svg& svg, const Frame& frame, const Row& row, double y, bool all) {
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    const auto [share, error] = row.numbers.covered[i];
    svg.line(frame.at(std::max(0.0, 100 * (share - 2 * error)), y),
             frame.at(std::min(100.0, 100 * (share + 2 * error)), y),
             {.stroke = kLevelColors[i], .width = all ? 3.0 : 1.6});
    svg.circle(frame.at(100 * share, y), all ? 5.5 : 3.5, {.fill = kLevelColors[i]});
  }
}

std::vector<Pixel> curve_of(const Frame& frame, const CoefficientCoverage& one, double replicates) {
  std::vector<Pixel> points{frame.at(0, 0)};
  double below = 0;
  for (std::size_t rank = 0; rank < one.ranks.size(); ++rank) {
    below += double(one.ranks[rank]) / replicates;
    const double expected = double(rank + 1) / double(one.ranks.size());
    points.push_back(frame.at(100 * expected, 100 * (below - expected)));
  }
  return points;
}

double largest_gap(const IntervalCoverage& found) {
  double largest = 0;
  for (const CoefficientCoverage& one : found.coefficients) {
    double below = 0;
    for (std::size_t rank = 0; rank < one.ranks.size(); ++rank) {
      below += double(one.ranks[rank]) / double(found.replicates);
      largest = std::max(largest, std::abs(below - double(rank + 1) / double(one.ranks.size())));
    }
  }
  return 100 * largest;
}

}  // namespace

std::string draw_coverage(const IntervalCoverage& found, std::span<const std::string> names) {
  std::vector<Row> rows{{"all", found.all}};
  for (std::size_t j = 0; j < names.size() && names.size() <= kMostRows; ++j) {
    rows.push_back({names[j], found.coefficients[j]});
  }
  const double width = 760, line = 22, top = 86;
  const Frame frame{
      {210, top, width - 238, line * double(rows.size()) + 8}, {0, 100}, {0, double(rows.size())}};
  Svg svg(width, frame.box.bottom() + 50, "Share of truths that intervals hold");
  svg.text({26, 34}, "What intervals hold", {.size = 18, .fill = kInk, .bold = true});
  svg.text({width - 28, 34}, fmt::format("{} replicates, ± 2 standard errors", found.replicates),
           {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  draw_levels(svg, frame);
  svg.text({frame.box.right(), frame.box.bottom() + 38}, "share of truths, %",
           {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = double(rows.size()) - double(i) - 0.5;
    svg.text({frame.box.left - 12, frame.at(0, y).y + 4}, rows[i].name,
             {.size = 13, .anchor = Anchor::end, .fill = kInk, .bold = i == 0});
    draw_row(svg, frame, rows[i], y, i == 0);
  }
  return svg.str();
}

std::string draw_ranks(const IntervalCoverage& found) {
  // Kolmogorov's 95 % quantile: a curve of n uniform ranks stays this near to the line.
  const double band = 100 * 1.358 / std::sqrt(double(found.replicates));
  const double reach = 1.15 * std::max(band, largest_gap(found));
  const double width = 760, height = 360;
  const Frame frame{{78, 66, width - 106, 230}, {0, 100}, {-reach, reach}};
  Svg svg(width, height, "Ranks of truths among draws, against uniform ones");
  svg.text({26, 34}, "Where truths fall among draws", {.size = 18, .fill = kInk, .bold = true});
  svg.text({width - 28, 34}, "a line for each coefficient; 95 of 100 stay in the band",
           {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  const Pixel corner = frame.at(0, band), opposite = frame.at(100, -band);
  svg.rect({corner.x, corner.y, opposite.x - corner.x, opposite.y - corner.y}, {.fill = kGrid});
  for (const double y : ticks(frame.y, tick_spacing(frame.y.size(), 5))) {
    const Pixel foot = frame.at(0, y);
    svg.line(foot, {frame.box.right(), foot.y}, {.stroke = y == 0 ? kAxis : kGrid});
    svg.text({foot.x - 9, foot.y + 5}, tick_label(y), {.size = 13, .anchor = Anchor::end});
  }
  for (const double x : ticks(frame.x, 20)) {
    const Pixel foot = frame.at(x, -reach);
    svg.text({foot.x, foot.y + 18}, tick_label(x), {.size = 13, .anchor = Anchor::middle});
  }
  for (const CoefficientCoverage& one : found.coefficients) {
    svg.polyline(curve_of(frame, one, double(found.replicates)),
                 {.stroke = kBlue, .width = 1.2, .opacity = 0.6});
  }
  svg.text(
      {frame.box.right(), frame.box.bottom() + 40},
      "draws below the truth, %; up: part of truths with at most so many, less its expectation",
      {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  return svg.str();
}

}  // namespace fedep
