#include "fedep/inference/rows/site_node.h"

#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

// The cavity of (β, m, u) given h, without a constant of its own; u is there with an intercept of one's own.
class GivenCavity {
 public:
  GivenCavity(const DenseGaussian<double>& cavity, Eigen::Index columns, bool intercept)
      : cavity_(cavity), d_(columns) {
    const Eigen::Index inner = d_ + (intercept ? 1 : 0);
    lambda_ = Eigen::MatrixXd::Identity(inner, inner);
    lambda_.topLeftCorner(d_, d_) = cavity.lambda.topLeftCorner(d_, d_);
  }
  DenseGaussian<double> at(const Eigen::VectorXd& h) const {
    DenseGaussian<double> out{Eigen::VectorXd::Zero(lambda_.rows()), lambda_};
    out.eta.head(d_) = cavity_.eta.head(d_) - cavity_.lambda.topRightCorner(d_, h.size()) * h;
    return out;
  }
  // What of the cavity's log density depends on h alone; and u's constant.
  double log_density(const Eigen::VectorXd& h) const {
    const Eigen::VectorXd pull = cavity_.eta.tail(h.size()) -
                                 0.5 * (cavity_.lambda.bottomRightCorner(h.size(), h.size()) * h);
    const double of_u = lambda_.rows() > d_ ? -0.5 * std::log(2 * std::numbers::pi) : 0.0;
    return h.dot(pull) + of_u;
  }

 private:
  const DenseGaussian<double>& cavity_;
  Eigen::Index d_;
  Eigen::MatrixXd lambda_;
};

// Rows of (β, m, u), whose last column is τ.
class EpNodes final : public SiteNodes {
 public:
  EpNodes(const DenseGaussian<double>& cavity, const GlmRows& rows)
      : given_(cavity, Eigen::Index(rows.columns), true), rows_(rows) {
    const std::size_t d = rows.columns;
    rows_.columns = d + 1;
    rows_.x.assign(rows.size() * rows_.columns, 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(rows.row(i).begin(), d, rows_.x.begin() + std::ptrdiff_t(i * rows_.columns));
    }
  }

  SiteNode at(const Eigen::VectorXd& h, RowSites& sites) override {
    const double tau = std::exp(h[0]);
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_.x[(i + 1) * rows_.columns - 1] = tau;
    const EvidentTilted q = from(given_.at(h), sites);
    const auto d = Eigen::Index(rows_.columns) - 1;
    return {given_.log_density(h) + q.log_evidence, q.mean.head(d),
            q.covariance.topLeftCorner(d, d), q.sweeps};
  }

 private:
  EvidentTilted from(const DenseGaussian<double>& cavity, RowSites& sites) {
    if (!sites.tau.empty()) {
      try {
        return quadrature_with_evidence(cavity, rows_, sites);
      } catch (const RunError&) {
        sites = {};  // another node's factors were too far away
      }
    }
    return quadrature_with_evidence(cavity, rows_, sites);
  }

  GivenCavity given_;
  GlmRows rows_;
};

// Numbers: all that rows say is in sums. They are taken of what is left beside a fit φ of the rows, so that
// no digits are lost where outcomes are far from zero.
class NumberNodes final : public SiteNodes {
 public:
  NumberNodes(const DenseGaussian<double>& cavity, const GlmRows& rows, const SiteParts& parts)
      : given_(cavity, Eigen::Index(rows.columns), parts.intercept),
        parts_(parts),
        what_(fmt::format("quadrature of client {}", rows.client)),
        noise_(rows.noise),
        n_(double(rows.size())),
        gram_(Eigen::MatrixXd::Zero(Eigen::Index(rows.columns), Eigen::Index(rows.columns))) {
    add_gram(rows.x, std::vector<double>(rows.size(), 1.0), gram_);
    mirror(gram_);
    Eigen::VectorXd left(Eigen::Index(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      left[Eigen::Index(i)] = rows.y[i] - (rows.offset.empty() ? 0 : rows.offset[i]);
    }
    Eigen::MatrixXd ridge = gram_;
    ridge.diagonal().array() += 1e-6 * (1 + gram_.diagonal().maxCoeff());
    if (!factorise(ridge)) fail(what_, "columns", "finite", "not");
    fit_ = solve(ridge, weighted_rows(rows, left));
    left -= linear_predictors(rows, fit_);
    pull_ = weighted_rows(rows, left);
    squares_ = left.squaredNorm();
  }

  SiteNode at(const Eigen::VectorXd& h, RowSites&) override {
    const auto d = gram_.rows();
    const double log_noise = parts_.noise ? h[h.size() - 1] : std::log(noise_);
    const double precision = std::exp(-2 * log_noise);
    DenseGaussian<double> q = given_.at(h);
    // In the coordinates (β, m) - φ.
    const double of_fit =
        q.eta.head(d).dot(fit_) - 0.5 * fit_.dot(q.lambda.topLeftCorner(d, d) * fit_);
    q.eta.head(d) += precision * pull_ - q.lambda.topLeftCorner(d, d) * fit_;
    q.lambda.topLeftCorner(d, d) += precision * gram_;
    if (parts_.intercept) {
      const double tau = std::exp(h[0]);
      q.eta[d] += precision * tau * pull_[d - 1];
      q.lambda.col(d).head(d) += precision * tau * gram_.col(d - 1);
      q.lambda.row(d).head(d) = q.lambda.col(d).head(d).transpose();
      q.lambda(d, d) += precision * tau * tau * gram_(d - 1, d - 1);
    }
    const GlmTilted tilted = tilted_of(what_, std::move(q));
    const double constant =
        -n_ * (log_noise + 0.5 * std::log(2 * std::numbers::pi)) - 0.5 * precision * squares_;
    return {given_.log_density(h) + of_fit + log_mass(tilted.q, tilted.mean) + constant,
            tilted.mean.head(d) + fit_, tilted.covariance.topLeftCorner(d, d), 1};
  }

 private:
  GivenCavity given_;
  SiteParts parts_;
  std::string what_;
  double noise_, n_;
  Eigen::MatrixXd gram_;
  Eigen::VectorXd fit_, pull_;
  double squares_ = 0;
};

}  // namespace

std::unique_ptr<SiteNodes> make_site_nodes(const DenseGaussian<double>& cavity, const GlmRows& rows,
                                           const SiteParts& parts) {
  if (rows.outcome == GlmOutcome::number) {
    return std::make_unique<NumberNodes>(cavity, rows, parts);
  }
  return std::make_unique<EpNodes>(cavity, rows);
}

}  // namespace fedep
