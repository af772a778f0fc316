#include "fedep/page/figure/toy_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/page/figure/frame.h"
#include "fedep/page/figure/svg.h"

namespace fedep {
namespace {

// ---- contours ----

Pixel place(const Frame& frame, const PlanePoint& p) { return frame.at(p.x, p.y); }

void draw_star(Svg& svg, Pixel center, double radius) {
  std::array<Pixel, 10> points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double angle = std::numbers::pi * (double(i) / 5 - 0.5);
    const double r = i % 2 == 0 ? radius : 0.42 * radius;
    points[i] = {center.x + r * std::cos(angle), center.y + r * std::sin(angle)};
  }
  svg.polygon(points, {.fill = kInk, .stroke = "#FFFFFF", .width = 1});
}

void draw_fed_avg(Svg& svg, Pixel p) {
  svg.polygon(std::array<Pixel, 3>{{{p.x, p.y - 8}, {p.x + 8, p.y + 6}, {p.x - 8, p.y + 6}}},
              {.fill = kOrange, .stroke = kInk, .width = 1});
}

void draw_fed_pa(Svg& svg, Pixel p) {
  svg.rect({p.x - 6, p.y - 6, 12, 12}, {.fill = kSkyBlue, .stroke = kInk, .width = 1});
}

// EP's path, a dot a step. The first step is FedPA's place and has its mark.
void draw_path(Svg& svg, const Frame& frame, const ToyContours& contours) {
  std::vector<Pixel> pixels;
  for (const PlanePoint& p : contours.path) pixels.push_back(place(frame, p));
  svg.polyline(pixels, {.stroke = kBlue, .width = 1.8});
  for (std::size_t i = 1; i < pixels.size(); ++i) {
    svg.circle(pixels[i], 3.2, {.fill = kBlue, .stroke = "#FFFFFF", .width = 0.8});
  }
}

void draw_ellipses(Svg& svg, const Frame& frame, const PlaneGaussian& client,
                   std::string_view color) {
  const double scale = frame.box.width / frame.x.size();  // the same on both axes
  const double middle = (client.var_x + client.var_y) / 2;
  const double spread = std::hypot((client.var_x - client.var_y) / 2, client.cov_xy);
  const double angle = 0.5 * std::atan2(2 * client.cov_xy, client.var_x - client.var_y);
  const Pixel center = place(frame, client.mean);
  const double long_axis = std::sqrt(middle + spread) * scale;
  const double short_axis = std::sqrt(std::max(0.0, middle - spread)) * scale;
  const double degrees = -angle * 180 / std::numbers::pi;  // pixels count downwards
  for (const double sigmas : {2.0, 1.0}) {
    svg.ellipse(center, sigmas * long_axis, sigmas * short_axis, degrees,
                {.fill = color, .opacity = 0.13});
    svg.ellipse(center, sigmas * long_axis, sigmas * short_axis, degrees,
                {.stroke = color, .width = 1.6});
  }
  for (const Pixel& arm : {Pixel{5, 0}, Pixel{0, 5}}) {
    svg.line({center.x - arm.x, center.y - arm.y}, {center.x + arm.x, center.y + arm.y},
             {.stroke = color, .width = 2});
  }
}

// The name stands above or below the two-sigma ellipse, on the side away from the exact mean.
void draw_client_name(Svg& svg, const Frame& frame, const PlaneGaussian& client,
                      const PlanePoint& exact, std::string_view name, std::string_view color) {
  const double reach_y = 2 * std::sqrt(client.var_y);
  const double reach_x = 2 * client.cov_xy / std::sqrt(client.var_y);  // where the top is
  const double side = client.mean.y >= exact.y ? 1 : -1;
  const Pixel tip = frame.at(client.mean.x + side * reach_x, client.mean.y + side * reach_y);
  svg.text({tip.x, side > 0 ? tip.y - 9 : tip.y + 19}, name,
           {.size = 14, .anchor = Anchor::middle, .fill = color, .bold = true});
}

void draw_axes(Svg& svg, const Frame& frame, double spacing, double text_size) {
  for (const double x : ticks(frame.x, spacing)) {
    const Pixel foot = frame.at(x, frame.y.low);
    svg.line(foot, {foot.x, frame.box.top}, {.stroke = kGrid});
    svg.text({foot.x, foot.y + text_size + 5}, tick_label(x),
             {.size = text_size, .anchor = Anchor::middle});
  }
  for (const double y : ticks(frame.y, spacing)) {
    const Pixel foot = frame.at(frame.x.low, y);
    svg.line(foot, {frame.box.right(), foot.y}, {.stroke = kGrid});
    svg.text({foot.x - 7, foot.y + 0.35 * text_size}, tick_label(y),
             {.size = text_size, .anchor = Anchor::end});
  }
}

void draw_marks(Svg& svg, const Frame& frame, const ToyContours& contours, double star) {
  draw_path(svg, frame, contours);
  draw_fed_avg(svg, place(frame, contours.fed_avg));
  draw_fed_pa(svg, place(frame, contours.fed_pa));
  draw_star(svg, place(frame, contours.exact), star);
}

void draw_contour_legend(Svg& svg, double left, double top, std::size_t steps) {
  const double mark = left + 20;
  const double text = left + 42;
  const auto row = [&](int i) { return top + 24 * i; };
  svg.text({left, row(0)}, "Global mean", {.size = 14, .fill = kInk, .bold = true});
  draw_fed_avg(svg, {mark, row(1) - 4});
  svg.text({text, row(1)}, "FedAvg", {});
  draw_fed_pa(svg, {mark, row(2) - 5});
  svg.text({text, row(2)}, "FedPA = FedEP, step 1", {});
  svg.line({mark - 14, row(3) - 5}, {mark + 14, row(3) - 5}, {.stroke = kBlue, .width = 1.8});
  svg.circle({mark, row(3) - 5}, 3.2, {.fill = kBlue});
  svg.text({text, row(3)}, fmt::format("FedEP, {} steps", steps), {});
  draw_star(svg, {mark, row(4) - 5}, 9);
  svg.text({text, row(4)}, "exact", {});
}

// A square about the end of EP's path, drawn large into `box`. Nothing where there is no path to
// look at.
void draw_close_up(Svg& svg, const Frame& frame, const ToyContours& contours, const Box& box) {
  AxisRange x, y;
  for (std::size_t i = 1; i < contours.path.size(); ++i) {
    x.cover(contours.path[i].x);
    y.cover(contours.path[i].y);
  }
  if (contours.path.size() < 3) return;
  x.cover(contours.exact.x);
  y.cover(contours.exact.y);
  const double half = 0.62 * std::max({x.size(), y.size(), 1e-3 * frame.x.size()});
  const PlanePoint middle{(x.low + x.high) / 2, (y.low + y.high) / 2};
  const Frame close{box, {middle.x - half, middle.x + half}, {middle.y - half, middle.y + half}};

  const Pixel corner = frame.at(close.x.low, close.y.high);
  const Pixel opposite = frame.at(close.x.high, close.y.low);
  const Box source{corner.x, corner.y, opposite.x - corner.x, opposite.y - corner.y};
  svg.rect(source, {.stroke = kAxis, .dash = "3 3"});
  svg.rect(box, {.fill = "#FFFFFF", .stroke = kAxis, .dash = "3 3"});
  svg.text({box.right(), box.bottom() + 18},
           fmt::format("close-up: steps 2 to {} of FedEP", contours.path.size()),
           {.size = 12, .anchor = Anchor::end, .fill = kGrey});
  svg.begin_clip(box);
  draw_marks(svg, close, contours, 9);
  svg.end_clip();
  for (std::size_t i = 1; i < std::min<std::size_t>(contours.path.size(), 5); ++i) {
    // Numbers stand outside the spiral, further from the exact mean than the dot.
    const Pixel dot = place(close, contours.path[i]);
    const Pixel from = place(close, contours.exact);
    const double length = std::max(1e-9, std::hypot(dot.x - from.x, dot.y - from.y));
    const Pixel out{(dot.x - from.x) / length, (dot.y - from.y) / length};
    svg.text({dot.x + 12 * out.x, dot.y + 12 * out.y + 4}, fmt::format("{}", i + 1),
             {.size = 12, .anchor = Anchor::middle, .fill = kBlue});
  }
}

// ---- distances ----

struct Curve {
  std::string_view name;
  const std::vector<double>& values;
  std::string_view color;
  std::string_view dash;
};

// Decades that hold every positive value. At least one.
AxisRange decades_of(const std::vector<Curve>& curves) {
  AxisRange decades;
  for (const Curve& curve : curves) {
    for (const double value : curve.values) {
      check_not_negative("draw_toy_distances", "distance", value);
      if (value > 0) decades.cover(std::log10(value));
    }
  }
  if (!(decades.size() >= 0)) decades = {-1, 0};
  decades.low = std::floor(decades.low);
  decades.high = std::max(std::ceil(decades.high), decades.low + 1);
  return decades;
}

void draw_log_axes(Svg& svg, const Frame& frame) {
  const double decades = frame.y.size();
  const double step = decades <= 8 ? 1 : decades <= 20 ? 2 : 4;
  for (const double y : ticks(frame.y, step)) {
    const Pixel foot = frame.at(frame.x.low, y);
    svg.line(foot, {frame.box.right(), foot.y}, {.stroke = kGrid});
    svg.text({foot.x - 9, foot.y + 5}, "10",
             {.size = 13, .anchor = Anchor::end, .exponent = tick_label(y)});
  }
  std::vector<double> rounds = ticks(frame.x, std::max(1.0, tick_spacing(frame.x.size(), 6)));
  if (std::find(rounds.begin(), rounds.end(), 1.0) == rounds.end()) rounds.push_back(1);
  for (const double round : rounds) {
    const Pixel foot = frame.at(round, frame.y.low);
    svg.line(foot, {foot.x, foot.y + 5}, {.stroke = kAxis});
    svg.text({foot.x, foot.y + 20}, fmt::format("{}", round),
             {.size = 13, .anchor = Anchor::middle});
  }
  svg.line({frame.box.left, frame.box.bottom()}, {frame.box.right(), frame.box.bottom()},
           {.stroke = kAxis});
}

void draw_curve(Svg& svg, const Frame& frame, const Curve& curve) {
  std::vector<Pixel> points;
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    const double decade = curve.values[i] > 0 ? std::log10(curve.values[i]) : frame.y.low;
    points.push_back(frame.at(double(i + 1), decade));
  }
  svg.polyline(points, {.stroke = curve.color, .width = 2.4, .dash = curve.dash});
  if (points.size() == 1) svg.circle(points[0], 4, {.fill = curve.color});
}

}  // namespace

std::string draw_toy_contours(const ToyContours& contours) {
  constexpr std::array kClientColors{kGreen, kPurple};
  AxisRange x, y;
  for (const PlaneGaussian& client : contours.clients) {
    check_positive("draw_toy_contours", "client's var_x", client.var_x);
    check_positive("draw_toy_contours", "client's var_y", client.var_y);
    for (const double side : {-2.0, 2.0}) {
      x.cover(client.mean.x + side * std::sqrt(client.var_x));
      y.cover(client.mean.y + side * std::sqrt(client.var_y));
    }
  }
  std::vector<PlanePoint> points = contours.path;
  points.insert(points.end(), {contours.exact, contours.fed_avg, contours.fed_pa});
  for (const PlanePoint& p : points) {
    x.cover(p.x);
    y.cover(p.y);
  }
  const double pad = 0.07 * std::max(x.size(), y.size());
  x = x.padded(pad);
  y = y.padded(pad);

  const double width = 640;
  const double left = 52, right = 22, top = 56, bottom = 44;
  const double plot_width = width - left - right;
  const Frame frame{{left, top, plot_width, plot_width * y.size() / x.size()}, x, y};
  Svg svg(width, frame.box.bottom() + bottom, "FedAvg, FedPA and FedEP with two Gaussian clients");
  svg.text({width - right, 34}, "ellipses: one and two standard deviations",
           {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  svg.text({26, 34}, "Two clients, one global mean", {.size = 18, .fill = kInk, .bold = true});
  draw_axes(svg, frame, tick_spacing(std::max(x.size(), y.size()), 6), 12);
  svg.begin_clip(frame.box);
  for (std::size_t k = 0; k < contours.clients.size(); ++k) {
    draw_ellipses(svg, frame, contours.clients[k], kClientColors[k % kClientColors.size()]);
  }
  svg.end_clip();
  for (std::size_t k = 0; k < contours.clients.size(); ++k) {
    draw_client_name(svg, frame, contours.clients[k], contours.exact,
                     fmt::format("client {}", k + 1), kClientColors[k % kClientColors.size()]);
  }
  const double inset = 0.36 * plot_width;
  draw_close_up(svg, frame, contours, {frame.box.right() - inset, top, inset, inset});
  draw_marks(svg, frame, contours, 9);
  draw_contour_legend(svg, left + 14, frame.box.bottom() - 118, contours.path.size());
  return svg.str();
}

std::string draw_toy_distances(const ToyCurves& curves) {
  // The curves that meet at the floor go last and thus on top.
  const std::vector<Curve> all{
      {"FedAvg", curves.fed_avg, kOrange, "10 6"},
      {"FedPA", curves.fed_pa, kSkyBlue, "2 6"},
      {"FedEP, scaled identity", curves.fed_ep_identity, kVermilion, ""},
      {"FedEP", curves.fed_ep, kBlue, ""},
  };
  const std::size_t rounds = curves.fed_avg.size();
  check_positive("draw_toy_distances", "number of rounds", double(rounds));
  for (const Curve& curve : all) {
    check_same_size("draw_toy_distances", curve.name, rounds, curve.values.size());
  }

  const double width = 720, height = 440;
  const Box box{78, 88, 614, 286};
  const Frame frame{box, {1, double(std::max<std::size_t>(rounds, 2))}, decades_of(all)};
  Svg svg(width, height, "Distance to the exact global mean against rounds");
  svg.text({26, 34}, "Distance to the exact global mean", {.size = 18, .fill = kInk, .bold = true});
  svg.text({width - 28, 34},
           curves.trials == 1 ? "one trial" : fmt::format("average of {} trials", curves.trials),
           {.size = 13, .anchor = Anchor::end, .fill = kGrey});
  draw_log_axes(svg, frame);
  for (const Curve& curve : all) draw_curve(svg, frame, curve);

  double at = 26;
  for (const Curve& curve : all) {
    svg.line({at, 61}, {at + 32, 61}, {.stroke = curve.color, .width = 2.4, .dash = curve.dash});
    svg.text({at + 41, 66}, curve.name, {.size = 14, .fill = kInk});
    at += 73 + 7.2 * double(curve.name.size());
  }
  svg.text({box.left + box.width / 2, height - 22}, "round",
           {.size = 14, .anchor = Anchor::middle});
  svg.text({24, box.top + box.height / 2}, "Euclidean distance (log scale)",
           {.size = 14, .anchor = Anchor::middle, .rotate = -90});
  return svg.str();
}

}  // namespace fedep
