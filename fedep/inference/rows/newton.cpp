#include "fedep/inference/rows/newton.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr int kMostSteps = 200;
constexpr double kTolerance = 1e-9;

// The longest of 1, ½, ¼ … steps along -direction that gains at least a tenth of what a straight line
// would. None: rounding leaves nothing to gain.
std::optional<double> step_length(const Energy& energy, const Eigen::VectorXd& theta, double before,
                                  const Eigen::VectorXd& direction, double slope) {
  for (double length = 1; length > 1e-12; length /= 2) {
    if (energy.value(theta - length * direction) <= before - 0.1 * length * slope) return length;
  }
  return std::nullopt;
}

}  // namespace

EnergyMode find_mode(std::string_view what, const Energy& energy, Eigen::VectorXd start) {
  EnergyMode mode{.theta = std::move(start), .hessian = {}, .factor = {}};
  double last_slope = std::numeric_limits<double>::infinity();
  for (; mode.steps < kMostSteps; ++mode.steps) {
    const Eigen::VectorXd gradient = energy.gradient(mode.theta);
    mode.hessian = energy.hessian(mode.theta);
    mode.factor = mode.hessian;
    if (!gradient.allFinite() || !factorise(mode.factor)) {
      fail(what, "cavity times likelihood", "positive definite and finite", "not");
    }
    const Eigen::VectorXd direction = solve(mode.factor, gradient);
    const double slope = gradient.dot(direction);  // the step's square, in deviations
    if (slope <= kTolerance * kTolerance) return mode;
    // So near, values differ by less than they are rounded to, whole steps are right, and what no
    // longer shrinks is rounding.
    const double before = energy.value(mode.theta);
    const bool near = slope < 1e-8 * (1 + std::abs(before));
    if (near && slope > 0.25 * last_slope) return mode;
    const std::optional<double> length =
        near ? 1.0 : step_length(energy, mode.theta, before, direction, slope);
    if (!length) break;
    mode.theta -= *length * direction;
    last_slope = slope;
  }
  throw RunError(fmt::format("{}: no mode was found in {} steps", what, mode.steps));
}

}  // namespace fedep
