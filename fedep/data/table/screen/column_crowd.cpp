#include "fedep/data/table/screen/column_crowd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fedep {
namespace {

constexpr double kMostSkew = 2;
constexpr std::array<double, 5> kMasses = {0.175, 0.2, 0.25, 0.2, 0.175};  // of kSummaryParts

// Of points in ascending order.
double weighted_quantile(std::span<const Weighted> points, double part) {
  double all = 0;
  for (const Weighted& point : points) all += point.weight;
  double before = 0, last_place = 0, last_value = points.empty() ? 0 : points.front().value;
  for (const Weighted& point : points) {
    const double place = before + point.weight / 2;
    if (place >= part * all) {
      if (place <= last_place) return point.value;
      const double share = (part * all - last_place) / (place - last_place);
      return last_value + std::clamp(share, 0.0, 1.0) * (point.value - last_value);
    }
    last_place = place;
    last_value = point.value;
    before += point.weight;
  }
  return last_value;
}

std::vector<Weighted> ascending(std::vector<Weighted> points) {
  std::sort(points.begin(), points.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  return points;
}

Yardstick yardstick(double ten, double fifty, double ninety, double rows) {
  constexpr double kLeastSide = 0.25;  // of the mean of both
  Yardstick out{.centre = fifty,
                .below = (fifty - ten) / kTenPercent,
                .above = (ninety - fifty) / kTenPercent,
                .skew = 0,
                .slack = 1.5 / std::sqrt(std::max(rows, 1.0))};
  if (out.is_flat()) return out;
  const double least = kLeastSide * (out.below + out.above) / 2;
  out.below = std::max(out.below, least);
  out.above = std::max(out.above, least);
  out.skew = std::clamp(std::log(out.above / out.below) / kTenPercent, -kMostSkew, kMostSkew);
  // A deviation of the unskewed scale, at the median: 90 % is above·kTenPercent away on this one.
  const double g = std::fabs(out.skew);
  if (g > 1e-6) {
    double& longer = out.skew > 0 ? out.above : out.below;
    longer *= g * kTenPercent / std::expm1(g * kTenPercent);
  }
  return out;
}

// The median of the largest magnitude of n Gaussian numbers (Abramowitz and Stegun, 26.2.22).
double gaussian_extreme(double n) {
  const double t = std::sqrt(-2 * std::log((1 - std::pow(0.5, 1 / n)) / 2));
  return t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t);
}

}  // namespace

double middle_of(const ColumnSummary& client) { return client.spread_out()[2]; }

double width_of(const ColumnSummary& client) {
  const auto q = client.spread_out();
  return q[4] - q[0];
}

double Yardstick::tail(bool up) const {
  return std::min(kMostSkew, std::max(0.0, up ? skew : -skew) + slack);
}

double Yardstick::distance(double value) const {
  const bool up = value > centre;
  const double g = tail(up), far = std::fabs(value - centre) / (up ? above : below);
  return g > 0 ? std::log1p(g * far) / g : far;
}

double Yardstick::fence(bool up) const {
  constexpr double kMostHeavy = 2.5;
  // Extremes 1.5 times as far as a Gaussian's are those of Student's t with 3 degrees of freedom,
  // of which one of thousands is 5 times as far as the rest: the fourth power leaves room for it.
  const double deviations = kFarValue * std::pow(std::clamp(heavy, 1.0, kMostHeavy), 4);
  const double g = tail(up);
  const double far = g > 0 ? std::expm1(g * deviations) / g : deviations;
  return centre + (up ? far * above : -far * below);
}

double weighted_median(std::vector<Weighted> points) {
  return weighted_quantile(ascending(std::move(points)), 0.5);
}

Crowd::Crowd(std::span<const ColumnSummary> clients, const std::vector<bool>& in)
    : clients_(clients), in_(in) {
  each([&](const ColumnSummary& client, std::size_t) {
    rows_ += client.count;
    members_ += 1;
  });
  choose_heard();
  std::vector<Weighted> points;
  for (const Heard& heard : heard_) {
    const ColumnSummary& client = clients[heard.client];
    const auto values = client.spread_out();
    for (std::size_t i = 0; i < values.size(); ++i) {
      points.push_back({values[i], kMasses[i] * client.count * heard.times, heard.client});
    }
  }
  points_ = ascending(std::move(points));
}

bool Crowd::is_small(std::size_t client) const {
  constexpr double kSmallPart = 0.01;
  return clients_[client].count < kSmallPart * rows_;
}

Crowd Crowd::without(std::size_t client) const {
  Crowd out = *this;
  std::erase_if(out.points_, [&](const Weighted& point) { return point.client == client; });
  out.rows_ -= clients_[client].count;
  out.members_ -= 1;
  out.left_out_ = client;
  return out;
}

Yardstick Crowd::measure() const {
  Yardstick out = yardstick(quantile(0.1), quantile(0.5), quantile(0.9), independent_rows());
  if (members_ < 2 || out.is_flat()) return out;
  out.heavy = typical([&](const ColumnSummary& c) {
    return std::max(out.distance(c.least), out.distance(c.most)) / gaussian_extreme(c.count);
  });
  return out;
}

double Crowd::quantile(double part) const { return weighted_quantile(points_, part); }

// Everybody up to kMostHeard; of more, those with a fair part of the rows, and of the small ones
// every so many for those between: medians over thousands are known well enough.
void Crowd::choose_heard() {
  constexpr double kMostHeard = 4000;
  const std::size_t stride = std::size_t(std::max(1.0, members_ / kMostHeard));
  std::size_t small = 0;
  each([&](const ColumnSummary& client, std::size_t c) {
    if (stride == 1 || client.count * kMostHeard > 4 * rows_) {
      heard_.push_back({c, 1.0});
    } else if (small++ % stride == 0) {
      heard_.push_back({c, double(stride)});
    }
  });
}

// Where clients differ more than their rows do, rows of one client say the same thing.
double Crowd::independent_rows() const {
  if (members_ < 2) return rows_;
  const double inside = typical(width_of) / (2 * kTenPercent), middle = typical(middle_of);
  const double between =
      1.4826 * typical([&](const ColumnSummary& c) { return std::fabs(middle_of(c) - middle); });
  const double each_has = rows_ / members_;
  const double own =
      std::max(0.0, between * between - 1.57 * inside * inside / std::max(1.0, each_has));
  const double all = own + inside * inside;
  return all > 0 ? rows_ / (1 + (each_has - 1) * own / all) : rows_;
}

}  // namespace fedep
