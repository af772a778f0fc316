#include "fedep/inference/rows/quadrature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/newton.h"
#include "fedep/inference/rows/row_quadrature.h"
#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr int kMostSweeps = 100;
constexpr double kTolerance = 1e-6;
// A row's cavity of less than this part of q's precision is rounding.
constexpr double kImproper = 1e-12;

// The row that moved most, in deviations of its f; a row that waits has moved infinitely.
struct Movement {
  double largest = 0;
  std::size_t row = 0;

  void note(std::size_t i, double by) {
    if (by > largest) *this = {by, i};
  }
};

// log ∫ N(f; mean, variance) exp(ν f - ½ τ f²) df
double log_average(double mean, double variance, double tau, double nu) {
  const double growth = 1 + tau * variance;
  return (nu * mean + 0.5 * (nu * nu * variance - tau * mean * mean)) / growth -
         0.5 * std::log(growth);
}

// q, as its rows' factors are updated one after another. Rows are taken in blocks: what a block's
// updates do to its own rows is worked out among these b numbers, and θ's covariance follows once, by
// products of matrices. The arithmetic is that of rank-one updates, row by row.
class RowFactors {
 public:
  RowFactors(std::string what, const DenseGaussian<double>& cavity, const GlmRows& rows)
      : what_(std::move(what)),
        cavity_(cavity),
        rows_(rows),
        likelihoods_(likelihoods(rows)),
        tau_(rows.size(), 0.0),
        nu_(rows.size(), 0.0),
        log_scale_(rows.size(), 0.0),
        d_(int(rows.columns)),
        block_(std::clamp<std::size_t>(rows.columns, 16, 128)) {}

  // Factors that have the likelihood's slope and curvature where θ is this.
  void begin_at(const Eigen::VectorXd& theta) {
    const Eigen::VectorXd f = linear_predictors(rows_, theta);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double place = f[Eigen::Index(i)];
      const RowDensity at = likelihoods_[i].at(place);
      tau_[i] = -at.curvature;
      nu_[i] = at.slope + tau_[i] * place;
    }
    refresh();
  }

  void begin_with(const RowSites& sites) {
    check_same_size(what_, "factors", rows_.size(), sites.tau.size());
    tau_ = sites.tau;
    nu_ = sites.nu;
    refresh();
  }
  RowSites sites() const { return {tau_, nu_}; }
  // log Σ of what factors are multiplied by, so that each has its row's mass.
  double log_scales() const { return std::accumulate(log_scale_.begin(), log_scale_.end(), 0.0); }

  Movement sweep() {
    Movement movement;
    for (std::size_t begin = 0; begin < rows_.size(); begin += block_) {
      update_block(begin, std::min(rows_.size(), begin + block_), movement);
    }
    if (since_refresh_ >= rows_.columns) refresh();  // rounding adds up; this costs as much again
    return movement;
  }

  const Eigen::VectorXd& mean() const { return mean_; }
  Eigen::VectorXd deviations() const { return covariance_.diagonal().cwiseSqrt(); }

  GlmTilted tilted() const { return tilted_of(what_, natural()); }

 private:
  DenseGaussian<double> natural() const {
    DenseGaussian<double> q = cavity_;
    add_gram(rows_.x, tau_, q.lambda);
    q.eta += weighted_rows(rows_, Eigen::Map<const Eigen::VectorXd>(nu_.data(), nu_.size()));
    return q;
  }

  void refresh() {
    GlmTilted now = tilted();
    mean_ = std::move(now.mean);
    covariance_ = std::move(now.covariance);
    since_refresh_ = 0;
  }

  void update_block(std::size_t begin, std::size_t end, Movement& movement) {
    const int b = int(end - begin);
    const double* const x = rows_.x.data() + begin * rows_.columns;
    spread_.resize(d_, b);  // Σ Xᵀ
    cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, d_, b, 1.0, covariance_.data(), d_, x, d_,
                0.0, spread_.data(), d_);
    own_.resize(b, b);  // X Σ Xᵀ, of the block's f
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, b, b, d_, 1.0, x, d_, spread_.data(), d_,
                0.0, own_.data(), b);
    Eigen::VectorXd f(b);
    cblas_dgemv(CblasColMajor, CblasTrans, d_, b, 1.0, x, d_, mean_.data(), 1, 0.0, f.data(), 1);

    // After updates k of strengths c_k, the covariance is Σ - Σ_k c_k (V u_k)(V u_k)ᵀ, V = Σ Xᵀ.
    Eigen::MatrixXd u = Eigen::MatrixXd::Identity(b, b), s(b, b);
    Eigen::VectorXd c = Eigen::VectorXd::Zero(b), shift = Eigen::VectorXd::Zero(b);
    for (int i = 0; i < b; ++i) {
      for (int k = 0; k < i; ++k) {
        if (c[k] != 0) u.col(i).head(k + 1) -= c[k] * s(i, k) * u.col(k).head(k + 1);
      }
      const Change change = update_row(begin + std::size_t(i), f[i], own_(i, i), movement);
      c[i] = change.strength;
      // Of what follows, only rows that are still to come are asked for.
      const int rest = b - i - 1;
      s.col(i).tail(rest) = own_.col(i).tail(rest);
      const auto to_come = s.col(i).tail(rest);
      own_.bottomRightCorner(rest, rest).noalias() -= c[i] * to_come * to_come.transpose();
      f.tail(rest) += change.pull * to_come;
      shift.head(i + 1) += change.pull * u.col(i).head(i + 1);
    }
    cblas_dgemv(CblasColMajor, CblasNoTrans, d_, b, 1.0, spread_.data(), d_, shift.data(), 1, 1.0,
                mean_.data(), 1);
    cblas_dtrmm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasUnit, d_, b, 1.0,
                u.data(), b, spread_.data(), d_);
    std::vector<double> strengths(c.data(), c.data() + b);
    for (double& strength : strengths) strength = -strength;
    add_gram({spread_.data(), std::size_t(spread_.size())}, strengths, covariance_);
    since_refresh_ += std::size_t(b);
  }

  struct Change {
    double strength = 0;  // the covariance loses strength s sᵀ, s = Σ x_i
    double pull = 0;      // the mean moves by pull s
  };

  // The factor of row i, whose f has these moments in q now.
  Change update_row(std::size_t i, double mean, double variance, Movement& movement) {
    const double left = 1 - tau_[i] * variance;  // of q's precision of f, without this factor
    if (!(variance > 0) || !(left > kImproper)) {
      movement.note(i, std::numeric_limits<double>::infinity());
      return {};
    }
    const double cavity_variance = variance / left;
    const double cavity_mean = (mean - nu_[i] * variance) / left;
    const RowMoments tilted = tilted_row(likelihoods_[i], cavity_mean, cavity_variance);
    // Likelihoods are concave in f: what is below zero here is rounding.
    const double tau = std::max(0.0, 1 / tilted.variance - 1 / cavity_variance);
    const double nu = tilted.mean * (tau + 1 / cavity_variance) - cavity_mean / cavity_variance;
    const double more = tau - tau_[i], more_nu = nu - nu_[i];
    const double growth = 1 + more * variance;  // of f's precision
    const Change change{more / growth, (more_nu - more * mean) / growth};
    tau_[i] = tau;
    nu_[i] = nu;
    log_scale_[i] = tilted.log_mass - log_average(cavity_mean, cavity_variance, tau, nu);
    movement.note(i, std::abs(change.pull) * std::sqrt(variance));
    movement.note(i, 0.5 * std::abs(std::log(growth)));
    return change;
  }

  std::string what_;
  const DenseGaussian<double>& cavity_;
  const GlmRows& rows_;
  std::vector<RowLikelihood> likelihoods_;
  std::vector<double> tau_, nu_, log_scale_;
  int d_;
  std::size_t block_;
  Eigen::VectorXd mean_;
  Eigen::MatrixXd covariance_;  // its lower triangle
  std::size_t since_refresh_ = 0;
  Eigen::MatrixXd spread_, own_;
};

// Sweeps until nothing moves.
GlmTilted converged(const std::string& what, RowFactors& factors) {
  Movement movement;
  for (int sweep = 1; sweep <= kMostSweeps; ++sweep) {
    const Eigen::VectorXd before = factors.mean();
    movement = factors.sweep();
    const Eigen::ArrayXd moved =
        (factors.mean() - before).array().abs() / factors.deviations().array();
    if (movement.largest > kTolerance || !(moved.maxCoeff() <= kTolerance)) continue;
    GlmTilted out = factors.tilted();
    out.sweeps = sweep;
    return out;
  }
  const bool waits = std::isinf(movement.largest);
  throw RunError(fmt::format(
      "{}: row {} must stand still, but {} after {} sweeps{}", what, movement.row,
      waits ? std::string("waits, its cavity being improper,")
            : fmt::format("moves by {:.3g} deviations", movement.largest),
      kMostSweeps,
      waits ? ": phase.guard (skip, back_off, floor) or, in bayes_admm, a smaller dual_rate" : ""));
}

// Factors of numbers with normal noise are exact at once.
GlmTilted normal_tilted(const std::string& what, const DenseGaussian<double>& cavity,
                        const GlmRows& rows) {
  DenseGaussian<double> q = cavity;
  const double precision = 1 / (rows.noise * rows.noise);
  add_gram(rows.x, std::vector<double>(rows.size(), precision), q.lambda);
  Eigen::VectorXd pull(Eigen::Index(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    pull[Eigen::Index(i)] = precision * (rows.y[i] - (rows.offset.empty() ? 0 : rows.offset[i]));
  }
  q.eta += weighted_rows(rows, pull);
  GlmTilted out = tilted_of(what, std::move(q));
  out.sweeps = 1;
  return out;
}

}  // namespace

double log_mass(const DenseGaussian<double>& q, const Eigen::VectorXd& mean) {
  Eigen::MatrixXd factor = q.lambda;
  if (!factorise(factor)) fail("log_mass", "q", "positive definite and finite", "not");
  return 0.5 * (q.eta.dot(mean) - log_determinant(factor) +
                double(q.size()) * std::log(2 * std::numbers::pi));
}

GlmTilted quadrature_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const std::string what = fmt::format("quadrature of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  if (rows.size() == 0) return tilted_of(what, cavity);
  if (rows.outcome == GlmOutcome::number) return normal_tilted(what, cavity, rows);
  RowFactors factors(what, cavity, rows);
  const GlmEnergy energy(cavity, rows);
  factors.begin_at(find_mode(what, energy, start_of(cavity, energy)).theta);
  return converged(what, factors);
}

EvidentTilted quadrature_with_evidence(const DenseGaussian<double>& cavity, const GlmRows& rows,
                                       RowSites& sites) {
  const std::string what = fmt::format("quadrature of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  if (rows.size() == 0 || rows.outcome == GlmOutcome::number) {
    EvidentTilted out{quadrature_tilted(cavity, rows)};
    out.log_evidence = log_mass(out.q, out.mean);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out.log_evidence += rows.likelihood(i).log_density(0);
    }
    return out;
  }
  RowFactors factors(what, cavity, rows);
  if (sites.tau.empty()) {
    const GlmEnergy energy(cavity, rows);
    factors.begin_at(find_mode(what, energy, start_of(cavity, energy)).theta);
  } else {
    factors.begin_with(sites);
  }
  EvidentTilted out{converged(what, factors)};
  out.log_evidence = log_mass(out.q, out.mean) + factors.log_scales();
  sites = factors.sites();
  return out;
}

}  // namespace fedep
