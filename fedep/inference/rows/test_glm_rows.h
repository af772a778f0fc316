// Rows drawn from a generalised linear model, and posteriors by brute force, for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Dense>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/random/stream.h"

namespace fedep {

struct GlmDesign {
  GlmOutcome outcome = GlmOutcome::yes_no;
  std::size_t rows = 20;
  std::size_t columns = 2;  // the last one is 1
  double correlation = 0;   // between any two of the others
  double weights = 0.7;     // deviation of the true weights
  double offset = 0;
  std::uint64_t seed = 1;
};

inline double draw_outcome(GlmOutcome outcome, double f, Stream& stream) {
  if (outcome == GlmOutcome::yes_no) return stream.uniform() < 1 / (1 + std::exp(-f)) ? 1 : 0;
  if (outcome == GlmOutcome::number) return f + stream.normal();
  double left = stream.uniform() - std::exp(-std::exp(f)), mass = std::exp(-std::exp(f)), y = 0;
  for (; left > 0 && y < 1000; left -= mass) mass *= std::exp(f) / ++y;
  return y;
}

inline GlmRows random_rows(const GlmDesign& design) {
  Stream stream({.seed = design.seed, .purpose = Purpose::test});
  std::vector<double> theta(design.columns);
  for (double& weight : theta) weight = design.weights * stream.normal();
  GlmRows rows{.client = "ward", .outcome = design.outcome, .columns = design.columns};
  for (std::size_t i = 0; i < design.rows; ++i) {
    const double common = std::sqrt(design.correlation) * stream.normal();
    double f = design.offset;
    for (std::size_t j = 0; j < design.columns; ++j) {
      const double own = std::sqrt(1 - design.correlation) * stream.normal();
      rows.x.push_back(j + 1 == design.columns ? 1.0 : common + own);
      f += theta[j] * rows.x.back();
    }
    rows.offset.push_back(design.offset);
    rows.y.push_back(draw_outcome(design.outcome, f, stream));
  }
  return rows;
}

inline DenseGaussian<double> normal_prior(std::size_t d, double precision, double mean = 0) {
  const Eigen::Index size = Eigen::Index(d);
  return {Eigen::VectorXd::Constant(size, precision * mean),
          precision * Eigen::MatrixXd::Identity(size, size)};
}

struct Moments {
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;
};

// Of exp(log_density), summed over a grid of ±`reach` in steps of `step` in the coordinates in which
// N(around, covariance) is a standard normal.
inline Moments grid_moments(const std::function<double(const Eigen::VectorXd&)>& log_density,
                            const Eigen::VectorXd& around, const Eigen::MatrixXd& covariance,
                            double reach = 8, double step = 0.2) {
  const Eigen::Index d = around.size();
  const Eigen::MatrixXd root = covariance.llt().matrixL();
  const int side = 2 * int(reach / step) + 1;
  const double top = log_density(around);
  double mass = 0;
  Eigen::VectorXd first = Eigen::VectorXd::Zero(d);
  Eigen::MatrixXd second = Eigen::MatrixXd::Zero(d, d);
  std::vector<int> place(std::size_t(d), 0);
  for (bool more = true; more;) {
    Eigen::VectorXd phi(d);
    for (Eigen::Index j = 0; j < d; ++j) phi[j] = -reach + step * place[std::size_t(j)];
    const Eigen::VectorXd gap = root * phi;
    const double weight = std::exp(log_density(around + gap) - top);
    mass += weight;
    first += weight * gap;
    second += weight * gap * gap.transpose();
    more = false;
    for (std::size_t j = 0; j < place.size() && !more; ++j) {
      place[j] = (place[j] + 1) % side;
      more = place[j] != 0;
    }
  }
  first /= mass;
  return {around + first, second / mass - first * first.transpose()};
}

// Largest |Δ mean| / sd and |log sd ratio|.
struct Distance {
  double mean = 0, log_deviation = 0;
};

inline Distance distance(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                         const Moments& exact) {
  Distance out;
  for (Eigen::Index j = 0; j < mean.size(); ++j) {
    const double variance = exact.covariance(j, j);
    out.mean = std::max(out.mean, std::abs(mean[j] - exact.mean[j]) / std::sqrt(variance));
    out.log_deviation =
        std::max(out.log_deviation, 0.5 * std::abs(std::log(covariance(j, j) / variance)));
  }
  return out;
}

}  // namespace fedep
