#include "fedep/inference/rows/full_ngvi.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/row_quadrature.h"
#include "fedep/inference/rows/symmetric_matrix.h"
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

// What a whole step from q to the target would gain, were the evidence a straight line: the square of the
// step's length in q's own measure, Var_q[δη·θ - ½ θᵀ δΛ θ].
double slope(const GlmTilted& q, const DenseGaussian<double>& end) {
  const Eigen::MatrixXd turn = (end.lambda - q.q.lambda) * q.covariance;  // δΛ Σ
  const Eigen::VectorXd pull = end.eta - q.q.eta - (end.lambda - q.q.lambda) * q.mean;
  return pull.dot(q.covariance * pull) + 0.5 * turn.cwiseProduct(turn.transpose()).sum();
}

// The mode, with its curvature or as many times more precision as has the most evidence: averages of e^f
// over a wide q may be beyond all numbers.
GlmTilted start(const std::string& what, const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const GlmTilted mode = laplace_tilted(cavity, rows);
  GlmTilted best = mode;
  double most = evidence_bound(cavity, rows, best);
  for (double factor = 4; factor < 1e12; factor *= 4) {
    GlmTilted next = tilted_of(what, power(mode.q, factor));
    const double evidence = evidence_bound(cavity, rows, next);
    if (std::isfinite(most) && !(evidence > most)) break;
    best = std::move(next);
    most = evidence;
  }
  return best;
}

}  // namespace

double evidence_bound(const DenseGaussian<double>& cavity, const GlmRows& rows,
                      const GlmTilted& q) {
  return bound(cavity, averages(rows, q), q);
}

GlmTilted ngvi_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const std::string what = fmt::format("ngvi of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  GlmTilted q = start(what, cavity, rows);
  Averages now = averages(rows, q);
  double evidence = bound(cavity, now, q), length = 1;
  for (int step = 0; step < kMostSteps; ++step) {
    const DenseGaussian<double> end = target(cavity, rows, now);
    const double gain = slope(q, end);
    if (gain <= kTolerance * kTolerance) {
      q.sweeps = step;
      return q;
    }
    // Near the end evidence differs by less than it is rounded to; what was short enough stays so.
    const bool near = gain < 1e-9 * (1 + std::abs(evidence));
    for (length = near ? length : std::min(1.0, 2 * length); length > 1e-9; length /= 2) {
      GlmTilted next = tilted_of(what, product(power(q.q, 1 - length), power(end, length)));
      Averages there = averages(rows, next);
      const double reached = bound(cavity, there, next);
      if (!near && !(reached - evidence >= 0.1 * length * gain)) continue;
      q = std::move(next);
      now = std::move(there);
      evidence = reached;
      break;
    }
  }
  throw RunError(fmt::format("{}: q must stand still, but moves after {} steps", what, kMostSteps));
}

}  // namespace fedep
