#include "fedep/metric/risk_calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace fedep {
namespace {

struct Point {
  double z = 0;  // log-odds of the predicted risk
  bool happened = false;
};

struct Line {
  double a = 0, b = 1;
};

// -log likelihood of log-odds a + b z, with first and second derivatives.
struct Curvature {
  double value = 0, a = 0, b = 0, aa = 0, ab = 0, bb = 0;
};

Curvature curvature(const std::vector<Point>& points, const Line& line) {
  Curvature sum;
  for (const Point& point : points) {
    const double f = line.a + line.b * point.z, e = std::exp(-std::abs(f));
    const double p = (f < 0 ? e : 1) / (1 + e), weight = e / ((1 + e) * (1 + e));
    const double gap = p - (point.happened ? 1 : 0);
    sum.value += std::max(f, 0.0) + std::log1p(e) - (point.happened ? f : 0);
    sum.a += gap;
    sum.b += gap * point.z;
    sum.aa += weight;
    sum.ab += weight * point.z;
    sum.bb += weight * point.z * point.z;
  }
  return sum;
}

// What Newton's method ends at, with the curvature there; none where it does not end.
struct Fit {
  Line line;
  Curvature at;
};

std::optional<Fit> fit(const std::vector<Point>& points, bool with_slope) {
  constexpr int kMostSteps = 100;
  Line line;
  Curvature at = curvature(points, line);
  for (int step = 0; step < kMostSteps; ++step) {
    const double determinant = at.aa * at.bb - at.ab * at.ab;
    const bool flat = with_slope ? !(determinant > 1e-12 * at.aa * at.bb) : !(at.aa > 0);
    if (flat) return std::nullopt;
    double by_a = at.a / at.aa, by_b = 0;
    if (with_slope) {
      by_a = (at.bb * at.a - at.ab * at.b) / determinant;
      by_b = (at.aa * at.b - at.ab * at.a) / determinant;
    }
    // The step's square in deviations. So near, one more whole step leaves nothing.
    const bool last = by_a * at.a + by_b * at.b < 1e-10;
    Line next;
    for (double length = 1;; length /= 2) {
      next = {line.a - length * by_a, line.b - length * by_b};
      const Curvature there = curvature(points, next);
      if (!last && !(there.value <= at.value) && length > 1e-9) continue;
      at = there;
      break;
    }
    line = next;
    if (last) return Fit{line, at};
  }
  return std::nullopt;
}

// Whether one outcome's log-odds end where the other's begin: no finite slope is the likeliest then.
// Points ascend.
bool separated(const std::vector<Point>& points) {
  double lowest[2] = {0, 0}, highest[2] = {0, 0};
  for (const int outcome : {0, 1}) {
    const auto is = [&](const Point& point) { return int(point.happened) == outcome; };
    lowest[outcome] = std::find_if(points.begin(), points.end(), is)->z;
    highest[outcome] = std::find_if(points.rbegin(), points.rend(), is)->z;
  }
  return highest[0] <= lowest[1] || highest[1] <= lowest[0];
}

}  // namespace

RiskCalibration risk_calibration(std::span<const Forecast> forecasts) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kEdge = 1e-12;
  RiskCalibration out{kNan, kNan, kNan, kNan};
  std::vector<Point> points;
  std::size_t events = 0;
  for (const Forecast& forecast : forecasts) {
    if (std::isnan(forecast.confidence)) return out;
    const double p = std::clamp(forecast.confidence, kEdge, 1 - kEdge);
    points.push_back({std::log(p) - std::log1p(-p), forecast.happened});
    events += forecast.happened ? 1 : 0;
  }
  if (events == 0 || events == points.size()) return out;
  std::sort(points.begin(), points.end(), [](const Point& x, const Point& y) {
    return x.z != y.z ? x.z < y.z : x.happened < y.happened;
  });
  if (const std::optional<Fit> large = fit(points, false)) {
    out.intercept = large->line.a;
    out.intercept_deviation = 1 / std::sqrt(large->at.aa);
  }
  if (separated(points)) return out;
  if (const std::optional<Fit> both = fit(points, true)) {
    const Curvature& at = both->at;
    out.slope = both->line.b;
    out.slope_deviation = std::sqrt(at.aa / (at.aa * at.bb - at.ab * at.ab));
  }
  return out;
}

}  // namespace fedep
