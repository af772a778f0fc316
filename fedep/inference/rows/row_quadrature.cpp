#include "fedep/inference/rows/row_quadrature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace fedep {
namespace {

constexpr int kNodes = 32;
// Nodes step over a bend of the likelihood where the normal's variance is more than this.
constexpr double kNarrow = 1.0;
// What an integrand that has fallen by e^-45 would still add is below a double's digits.
constexpr double kNothingLeft = 45;

struct HermiteNode {
  double place = 0;       // t, a root of the Hermite polynomial
  double log_weight = 0;  // log w + t²: the rule for ∫ g(t) dt
};

// Roots by Newton's method on the orthonormal Hermite functions h_n(t) (e^(-t²/2) left out), from
// the largest on, each deflated by those before; w = 1 / (n h_(n-1)(t)²).
std::array<HermiteNode, kNodes> hermite_nodes() {
  std::array<HermiteNode, kNodes> nodes;
  double root = std::sqrt(2.0 * kNodes + 1);
  for (int k = 0; k < kNodes / 2; ++k, root -= 0.1) {  // roots are further apart than that
    double before = 0;
    for (int step = 0; step < 100; ++step) {
      double value = std::pow(std::numbers::pi, -0.25), last = 0;
      for (int n = 1; n <= kNodes; ++n) {
        const double next = root * std::sqrt(2.0 / n) * value - std::sqrt(double(n - 1) / n) * last;
        last = value;
        value = next;
      }
      before = last;
      double slope = std::sqrt(2.0 * kNodes) * last / value;  // of log h_n
      for (int j = 0; j < k; ++j) {
        slope -= 1 / (root - nodes[j].place) + 1 / (root + nodes[j].place);
      }
      const double move = 1 / slope;
      if (!std::isfinite(move)) break;  // value is 0: this is the root
      root -= move;
      if (std::abs(move) < 1e-15 * std::max(1.0, root)) break;
    }
    const double log_weight = -std::log(double(kNodes)) - 2 * std::log(std::abs(before));
    nodes[k] = {root, log_weight + root * root};
    nodes[kNodes - 1 - k] = {-root, log_weight + root * root};
  }
  return nodes;
}

// log of N(f; mean, variance) p(y | f), less the normal's constant; concave in f.
struct Integrand {
  const RowLikelihood& row;
  double mean, variance;

  double operator()(double f) const {
    const double gap = f - mean;
    return row.log_density(f) - 0.5 * gap * gap / variance;
  }
  RowDensity derivatives(double f) const {
    RowDensity at = row.at(f);
    at.slope -= (f - mean) / variance;
    at.curvature -= 1 / variance;
    return at;
  }
  // Between these the slope changes its sign.
  double lowest() const {
    return row.outcome == GlmOutcome::count ? std::min(mean, -row.offset) - variance
                                            : mean - variance;
  }
  double highest() const {
    return row.outcome == GlmOutcome::count
               ? std::max(mean, std::log(std::max(row.y, 1.0)) - row.offset)
               : mean + variance;
  }
};

struct Peak {
  double place, width;  // the mode, and the deviation that the curvature there has
};

// Newton's method within a bracket, halved where a step would leave it or falls too slowly.
Peak peak_of(const Integrand& integrand) {
  double low = integrand.lowest(), high = integrand.highest();
  double f = std::clamp(integrand.mean, low, high), last = high - low;
  RowDensity at = integrand.derivatives(f);
  for (int step = 0; step < 200; ++step) {
    const double width = 1 / std::sqrt(-at.curvature);
    (at.slope > 0 ? low : high) = f;
    double next = f - at.slope / at.curvature;
    const bool slow = std::abs(next - f) > 0.5 * last;
    if (!(next >= low && next <= high) || (slow && step > 0)) next = 0.5 * (low + high);
    last = std::abs(next - f);
    f = next;
    at = integrand.derivatives(f);
    if (last <= 1e-7 * width) break;
  }
  return {f, 1 / std::sqrt(-at.curvature)};
}

// Moments of Σ_k e^(log mass_k) δ(f_k) around a centre that the caller adds.
class WeightedMoments {
 public:
  explicit WeightedMoments(double log_top) : top_(log_top) {}
  void add(double gap, double log_mass) {
    const double mass = std::exp(log_mass - top_);
    mass_ += mass;
    first_ += mass * gap;
    second_ += mass * gap * gap;
  }
  double log_mass() const { return top_ + std::log(mass_); }
  double mean() const { return first_ / mass_; }
  double variance() const { return second_ / mass_ - mean() * mean(); }

 private:
  double top_, mass_ = 0, first_ = 0, second_ = 0;
};

// Steps that see the nearest pole or turn of the integrand off the real line: ±iπ of the logistic
// function, ±iπ/2 of e^(-e^f). Of a normal that is a thousand times wider than these, whose bend is an
// edge, 20,000 steps are enough.
double step_of(const Integrand& integrand, double width) {
  const double bend = integrand.row.outcome == GlmOutcome::count ? 0.35 : 0.7;
  return std::min(0.5 * width, std::max(bend, 1e-3 * std::sqrt(integrand.variance)));
}

template <class Add>
void equal_steps(const Integrand& integrand, const Peak& peak, double log_top, const Add& add) {
  const double step = step_of(integrand, peak.width);
  const double log_step = std::log(step);
  add(0.0, log_top + log_step);
  for (const double sign : {-1.0, 1.0}) {
    for (int k = 1;; ++k) {
      const double gap = sign * k * step;
      const double value = integrand(peak.place + gap);
      if (!(value > log_top - kNothingLeft)) break;
      add(gap, value + log_step);
    }
  }
}

RowMoments normal_row(const RowLikelihood& row, double mean, double variance) {
  const double total = variance + 1 / row.precision, gap = row.y - row.offset - mean;
  return {.mean = mean + variance / total * gap,
          .variance = variance / (1 + variance * row.precision),
          .log_mass = -0.5 * (std::log(2 * std::numbers::pi * total) + gap * gap / total)};
}

}  // namespace

RowMoments tilted_row(const RowLikelihood& row, double mean, double variance) {
  if (row.outcome == GlmOutcome::number) return normal_row(row, mean, variance);
  static const std::array<HermiteNode, kNodes> nodes = hermite_nodes();
  const Integrand integrand{row, mean, variance};
  const Peak peak = peak_of(integrand);
  const double log_top = integrand(peak.place);
  WeightedMoments moments(log_top);
  if (variance <= kNarrow) {
    const double scale = std::numbers::sqrt2 * peak.width, log_scale = std::log(scale);
    for (const HermiteNode& node : nodes) {
      const double gap = scale * node.place;
      moments.add(gap, integrand(peak.place + gap) + node.log_weight + log_scale);
    }
  } else {
    equal_steps(integrand, peak, log_top,
                [&](double gap, double log_mass) { moments.add(gap, log_mass); });
  }
  return {.mean = peak.place + moments.mean(),
          .variance = moments.variance(),
          .log_mass = moments.log_mass() - 0.5 * std::log(2 * std::numbers::pi * variance)};
}

RowDensity expected_density(const RowLikelihood& row, double mean, double variance) {
  if (row.outcome == GlmOutcome::number) {
    RowDensity at = row.at(mean);
    at.log_density -= 0.5 * row.precision * variance;
    return at;
  }
  if (row.outcome == GlmOutcome::count) {
    const double rate = std::exp(mean + row.offset + 0.5 * variance);
    return {row.constant + row.y * (mean + row.offset) - rate, row.y - rate, -rate};
  }
  static const std::array<HermiteNode, kNodes> nodes = hermite_nodes();
  const double deviation = std::sqrt(variance);
  RowDensity sum;
  const auto add = [&](double f, double mass) {
    const RowDensity at = row.at(f);
    sum.log_density += mass * at.log_density;
    sum.slope += mass * at.slope;
    sum.curvature += mass * at.curvature;
  };
  if (variance <= kNarrow) {
    for (const HermiteNode& node : nodes) {
      const double t = node.place;
      add(mean + std::numbers::sqrt2 * deviation * t,
          std::exp(node.log_weight - t * t) / std::sqrt(std::numbers::pi));
    }
    return sum;
  }
  const double step = std::min(0.5, 0.7 / deviation);  // in deviations
  const double density = step / std::sqrt(2 * std::numbers::pi);
  const int steps = int(std::ceil(std::sqrt(2 * kNothingLeft) / step));
  for (int k = -steps; k <= steps; ++k) {
    const double z = k * step;
    add(mean + deviation * z, density * std::exp(-0.5 * z * z));
  }
  return sum;
}

}  // namespace fedep
