#include "fedep/page/figure/forest_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/error.h"
#include "fedep/page/figure/effect_text.h"
#include "fedep/page/figure/frame.h"
#include "fedep/page/figure/svg.h"
#include "fedep/page/figure/text_lines.h"

namespace fedep {
namespace {

constexpr double kWidth = 760, kEdge = 26, kText = 13, kLine = 17, kRow = 26;
constexpr double kFoot = 34;                           // of a panel: its axis
constexpr double kLeastNames = 110, kMostNames = 240;  // pixels
constexpr std::size_t kMostLines = 3;                  // of a name
// Times what three of four rows reach to.
constexpr double kEnds = 4, kEstimates = 10;

struct LaidRow {
  const ForestRow& row;
  std::vector<std::string> name;
  EffectText numbers;

  double height() const { return kRow + kLine * double(name.size() - 1); }
};

double far_end(const ForestRow& row) {
  if (!row.interval) return std::abs(row.estimate);
  return std::max(std::abs(row.interval->first), std::abs(row.interval->second));
}

AxisRange shown_range(const std::vector<ForestRow>& rows) {
  std::vector<double> ends;
  for (const ForestRow& row : rows) ends.push_back(far_end(row));
  std::sort(ends.begin(), ends.end());
  double reach = ends[(ends.size() - 1) * 3 / 4];
  if (reach == 0) reach = ends.back();
  AxisRange range{0, 0};
  for (const ForestRow& row : rows) {
    if (std::abs(row.estimate) <= kEstimates * reach) range.cover(row.estimate);
    if (!row.interval) continue;
    range.cover(std::clamp(row.interval->first, -kEnds * reach, kEnds * reach));
    range.cover(std::clamp(row.interval->second, -kEnds * reach, kEnds * reach));
  }
  return range.padded(range.size() > 0 ? 0.04 * range.size() : 1);
}

EffectText numbers_of(const ForestRow& row, EffectScale scale) {
  if (scale == EffectScale::difference) {
    return effect_text(row.estimate, row.interval, scale);
  }
  std::optional<Bounds> ratio;
  if (row.interval) ratio = Bounds{std::exp(row.interval->first), std::exp(row.interval->second)};
  return effect_text(std::exp(row.estimate), ratio, scale);
}

void check_rows(const ForestFigure& figure) {
  if (figure.rows.empty()) throw InputError("draw_forest: rows must not be empty, but are");
  for (const ForestRow& row : figure.rows) {
    check_finite("draw_forest", "estimate", row.estimate);
    if (!row.interval) continue;
    check_finite("draw_forest", "low", row.interval->first);
    check_finite("draw_forest", "high", row.interval->second);
  }
}

struct Tick {
  double at = 0;  // on the axis, where ratios are logarithms
  std::string label;
  std::string exponent = {};
};

Tick ratio_tick(double ratio, double power) {
  const bool plain = std::abs(power) < 4;
  if (plain) return {std::log(ratio), tick_label(ratio)};
  return {std::log(ratio), "10", tick_label(power)};
}

// Powers of ten, with 2 and 5 between them where there is room; near 1, round ratios.
std::vector<Tick> ratio_ticks(const AxisRange& range, double most) {
  const double decades = range.size() / std::log(10.0);
  std::vector<Tick> out;
  if (decades < 1) {
    const AxisRange ratios{std::exp(range.low), std::exp(range.high)};
    for (const double ratio : ticks(ratios, tick_spacing(ratios.size(), int(most)))) {
      if (ratio > 0) out.push_back({std::log(ratio), tick_label(ratio)});
    }
    return out;
  }
  const std::vector<double> between =
      3 * decades <= most + 1 ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
  const double every = std::ceil(decades / most);
  const double first = std::floor(range.low / std::log(10.0) / every) * every;
  for (double power = first; power * std::log(10.0) <= range.high; power += every) {
    for (const double factor : between) {
      const Tick tick = ratio_tick(factor * std::pow(10.0, power), power);
      if (std::isfinite(tick.at) && tick.at >= range.low && tick.at <= range.high) {
        out.push_back(tick);
      }
    }
  }
  return out;
}

std::vector<Tick> axis_ticks(const Frame& frame, EffectScale scale) {
  const AxisRange& range = frame.x;
  const double most = std::max(2.0, std::floor(frame.box.width / 45));
  if (scale == EffectScale::ratio) return ratio_ticks(range, most);
  std::vector<Tick> out;
  for (const double x : ticks(range, tick_spacing(range.size(), int(most)))) {
    out.push_back({x, tick_label(x)});
  }
  return out;
}

class Drawing {
 public:
  Drawing(Svg& svg, const Frame& frame) : svg_(svg), frame_(frame) {}

  void axis(double top, double bottom, const std::vector<Tick>& ticks) {
    const double none = x_of(0);
    svg_.line({none, top}, {none, bottom}, {.stroke = kInk, .width = 1.2});
    svg_.line({frame_.box.left, bottom}, {frame_.box.right(), bottom}, {.stroke = kAxis});
    for (const Tick& tick : ticks) {
      const double x = x_of(tick.at);
      svg_.line({x, bottom}, {x, bottom + 5}, {.stroke = kAxis});
      svg_.text({x, bottom + 19}, tick.label,
                {.size = 12, .anchor = Anchor::middle, .exponent = tick.exponent});
    }
  }

  void effect(const ForestRow& row, double y) {
    const AxisRange& shown = frame_.x;
    if (row.interval) {
      const auto [low, high] = *row.interval;
      const double left = std::clamp(low, shown.low, shown.high);
      const double right = std::clamp(high, shown.low, shown.high);
      svg_.line({x_of(left), y}, {x_of(right), y}, {.stroke = kBlue, .width = 2});
      end(low, y);
      end(high, y);
    }
    if (row.estimate < shown.low || row.estimate > shown.high) {
      if (!row.interval) end(row.estimate, y);
      return;
    }
    const double x = x_of(row.estimate);
    svg_.rect({x - 4.5, y - 4.5, 9, 9}, {.fill = row.interval ? kBlue : std::string_view("#FFFFFF"),
                                         .stroke = kBlue,
                                         .width = 1.6});
  }

 private:
  double x_of(double value) const { return frame_.at(value, 0).x; }

  // A cap, or an arrow's head where the interval goes on.
  void end(double value, double y) {
    if (value >= frame_.x.low && value <= frame_.x.high) {
      const double x = x_of(value);
      svg_.line({x, y - 4}, {x, y + 4}, {.stroke = kBlue, .width = 2});
      return;
    }
    const double tip = value < frame_.x.low ? frame_.box.left : frame_.box.right();
    const double back = value < frame_.x.low ? tip + 8 : tip - 8;
    const std::array<Pixel, 3> head{{{tip, y}, {back, y - 5}, {back, y + 5}}};
    svg_.polygon(head, {.fill = kBlue});
  }

  Svg& svg_;
  const Frame& frame_;
};

struct Columns {
  double names = kLeastNames, estimate = 0, low = 0, high = 0;  // widths

  double numbers() const { return estimate + (high > 0 ? 12 + low + 24 + high : 0); }
};

void draw_texts(Svg& svg, const LaidRow& laid, const Columns& columns, double top) {
  double y = top + kRow / 2 + 4.5;
  for (const std::string& line : laid.name) {
    svg.text({kEdge, y}, line, {.size = kText, .fill = kInk});
    y += kLine;
  }
  const double base = top + laid.height() / 2 + 4.5;
  const auto number = [&](double right, const std::string& text) {
    std::string shown = text;
    if (shown.starts_with('-')) shown.replace(0, 1, "−");
    svg.text({right, base}, shown, {.size = kText, .anchor = Anchor::end, .fill = kInk});
  };
  const double right = kWidth - kEdge;
  number(right - (columns.numbers() - columns.estimate), laid.numbers.estimate);
  if (laid.numbers.low.empty()) return;
  number(right - columns.high - 24, laid.numbers.low);
  svg.text({right - columns.high - 12, base}, "to",
           {.size = kText, .anchor = Anchor::middle, .fill = kGrey});
  number(right, laid.numbers.high);
}

struct Panel {
  std::string_view group;
  std::vector<LaidRow> rows = {};

  double head() const { return group.empty() ? 0 : 30; }
  double body() const {
    double out = 0;
    for (const LaidRow& row : rows) out += row.height();
    return out;
  }
  double height() const { return head() + body() + kFoot; }
};

std::vector<Panel> panels_of(const ForestFigure& figure) {
  std::vector<Panel> out;
  for (const ForestRow& row : figure.rows) {
    if (out.empty() || out.back().group != row.group) out.push_back({row.group});
    out.back().rows.push_back(
        {row, text_lines(row.name, kText, kMostNames, kMostLines), numbers_of(row, figure.scale)});
  }
  return out;
}

Columns columns_of(const std::vector<Panel>& panels) {
  Columns out;
  for (const Panel& panel : panels) {
    for (const LaidRow& laid : panel.rows) {
      for (const std::string& line : laid.name) {
        out.names = std::max(out.names, text_width(line, kText));
      }
      out.estimate = std::max(out.estimate, text_width(laid.numbers.estimate, kText));
      out.low = std::max(out.low, text_width(laid.numbers.low, kText));
      out.high = std::max(out.high, text_width(laid.numbers.high, kText));
    }
  }
  return out;
}

void draw_panel(Svg& svg, const Frame& frame, const Panel& panel, const Columns& columns,
                const std::vector<Tick>& ticks, double top) {
  if (!panel.group.empty()) {
    svg.text({kEdge, top + 18}, text_lines(panel.group, 14, kWidth - 2 * kEdge, 1)[0],
             {.size = 14, .fill = kInk, .bold = true});
  }
  top += panel.head();
  double y = top;
  for (std::size_t i = 0; i < panel.rows.size(); ++i) {  // the eye's way from a name to its numbers
    const double height = panel.rows[i].height();
    if (i % 2 == 0) {
      svg.rect({kEdge - 8, y, kWidth - 2 * kEdge + 16, height}, {.fill = "#F5F5F5"}, 3);
    }
    y += height;
  }
  Drawing drawing(svg, frame);
  drawing.axis(top, y, ticks);
  y = top;
  for (const LaidRow& row : panel.rows) {
    draw_texts(svg, row, columns, y);
    drawing.effect(row.row, y + row.height() / 2);
    y += row.height();
  }
}

}  // namespace

std::string draw_forest(const ForestFigure& figure) {
  check_rows(figure);
  const std::vector<Panel> panels = panels_of(figure);
  const Columns columns = columns_of(panels);
  const std::vector<std::string> caption = text_lines(figure.caption, 12, kWidth - 2 * kEdge, 12);
  const double head = 56, axis_name = 22;
  double height = head + axis_name;
  for (const Panel& panel : panels) height += panel.height();
  if (!figure.caption.empty()) height += 16 * double(caption.size()) + 8;

  const double left = kEdge + columns.names + 22;
  const double right = kWidth - kEdge - columns.numbers() - 22;
  const Frame frame{{left, 0, right - left, 1}, shown_range(figure.rows), {0, 1}};
  const std::vector<Tick> ticks = axis_ticks(frame, figure.scale);
  Svg svg(kWidth, height, figure.title);
  svg.text({kEdge, 34}, figure.title, {.size = 18, .fill = kInk, .bold = true});
  svg.text({kWidth - kEdge, 34}, figure.note, {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  double y = head;
  for (const Panel& panel : panels) {
    draw_panel(svg, frame, panel, columns, ticks, y);
    y += panel.height();
  }
  svg.text({(left + right) / 2, y + 6}, figure.axis,
           {.size = 13, .anchor = Anchor::middle, .fill = kGrey});
  y += axis_name + 8;
  for (const std::string& line : caption) {
    svg.text({kEdge, y}, line, {.size = 12, .fill = kGrey});
    y += 16;
  }
  return svg.str();
}

}  // namespace fedep
