#include "fedep/inference/full_ngvi.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/inference/full_laplace.h"
#include "fedep/inference/glm_energy.h"
#include "fedep/inference/row_quadrature.h"
#include "fedep/inference/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr int kMostSteps = 500;
constexpr double kTolerance = 1e-6;

// Every row's average log density and derivatives over q, and the mean of its f.
struct Averages {
  std::vector<RowDensity> rows;
  Eigen::VectorXd f;
};

Averages averages(const GlmRows& rows, const GlmTilted& q) {
  const int n = int(rows.size()), d = int(rows.columns);
  Averages out{{}, linear_predictors(rows, q.mean)};
  Eigen::MatrixXd spread(d, n);  // Σ Xᵀ
  if (n > 0) {
    cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, d, n, 1.0, q.covariance.data(), d,
                rows.x.data(), d, 0.0, spread.data(), d);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Eigen::Map<const Eigen::VectorXd> x(rows.row(i).data(), d);
    out.rows.push_back(expected_density(rows.likelihood(i), out.f[Eigen::Index(i)],
                                        x.dot(spread.col(Eigen::Index(i)))));
  }
  return out;
}

double bound(const DenseGaussian<double>& cavity, const Averages& averages, const GlmTilted& q) {
  const Eigen::VectorXd pull = cavity.lambda.selfadjointView<Eigen::Lower>() * q.mean;
  double sum = cavity.eta.dot(q.mean) - 0.5 * q.mean.dot(pull) -
               0.5 * cavity.lambda.cwiseProduct(q.covariance).sum();
  for (const RowDensity& row : averages.rows) sum += row.log_density;
  Eigen::MatrixXd factor = q.q.lambda;
  if (!factorise(factor)) fail("evidence_bound", "q", "positive definite", "not");
  return sum - 0.5 * log_determinant(factor);
}

// Where a whole step leads.
DenseGaussian<double> target(const DenseGaussian<double>& cavity, const GlmRows& rows,
                             const Averages& averages) {
  DenseGaussian<double> out = cavity;
  std::vector<double> weights;
  Eigen::VectorXd pull(Eigen::Index(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowDensity& row = averages.rows[i];
    weights.push_back(-row.curvature);
    pull[Eigen::Index(i)] = row.slope - row.curvature * averages.f[Eigen::Index(i)];
  }
  add_gram(rows.x, weights, out.lambda);
  mirror(out.lambda);
  out.eta += weighted_rows(rows, pull);
  return out;
}

double movement(const GlmTilted& from, const GlmTilted& to) {
  const Eigen::ArrayXd before = from.covariance.diagonal(), after = to.covariance.diagonal();
  const double mean = ((to.mean - from.mean).array().abs() / after.sqrt()).maxCoeff();
  return std::max(mean, 0.5 * (after / before).log().abs().maxCoeff());
}

}  // namespace

double evidence_bound(const DenseGaussian<double>& cavity, const GlmRows& rows,
                      const GlmTilted& q) {
  return bound(cavity, averages(rows, q), q);
}

GlmTilted ngvi_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const std::string what = fmt::format("ngvi of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  GlmTilted q = laplace_tilted(cavity, rows);
  Averages now = averages(rows, q);
  double evidence = bound(cavity, now, q);
  for (int step = 1; step <= kMostSteps; ++step) {
    const DenseGaussian<double> end = target(cavity, rows, now);
    for (double length = 1;; length /= 2) {
      GlmTilted next = tilted_of(what, product(power(q.q, 1 - length), power(end, length)));
      Averages there = averages(rows, next);
      const double gained = bound(cavity, there, next) - evidence;
      const double moved = movement(q, next);
      // Near the end, evidence differs by less than it is rounded to.
      const bool taken = gained >= -1e-10 * (1 + std::abs(evidence));
      if (!taken && length > 1e-6) continue;
      q = std::move(next);
      now = std::move(there);
      evidence += gained;
      q.sweeps = step;
      if (moved <= kTolerance * length) return q;
      break;
    }
  }
  throw RunError(fmt::format("{}: q must stand still, but moves after {} steps", what, kMostSteps));
}

}  // namespace fedep
