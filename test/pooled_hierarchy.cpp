#include "test/pooled_hierarchy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Of one row: -log p(y | z) and its slopes by z and by log σ. Written apart from the methods' own.
struct RowLoss {
  double value, by_z, by_log_noise;
};

RowLoss row_loss(TargetKind target, double z, double y, double log_noise) {
  if (target == TargetKind::real) {
    const double precision = std::exp(-2 * log_noise), gap = z - y;
    return {0.5 * precision * gap * gap + log_noise, precision * gap, 1 - precision * gap * gap};
  }
  if (target == TargetKind::count) return {std::exp(z) - y * z, std::exp(z) - y, 0};
  return {std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - y * z, 1 / (1 + std::exp(-z)) - y,
          0};
}

double deviation_of(const VectorXd& y) {
  return std::sqrt((y.array() - y.mean()).square().sum() / double(y.size() - 1));
}

// -log of the posterior over (β, m, log τ, log σ, u), and its gradient.
class Hierarchy {
 public:
  Hierarchy(const PooledRows& rows, const HierarchySettings& settings)
      : rows_(rows),
        settings_(settings),
        columns_(rows.x.cols()),
        log_tau_(columns_),
        log_noise_(columns_ + (settings.intercepts ? 1 : 0)),
        shared_(log_noise_ + (settings.noise ? 1 : 0)) {
    if (settings.intercepts) sites_ = Index(*std::ranges::max_element(rows.site)) + 1;
    if (rows.target == TargetKind::real) {
      const double given = settings.outcome_deviation;
      prior_noise_ = std::log(given > 0 ? given : deviation_of(rows.y));
      prior_tau_ += prior_noise_;
    }
  }

  Index size() const { return shared_ + sites_; }
  Index shared() const { return shared_; }
  Index sites() const { return sites_; }

  double value(const VectorXd& at, VectorXd& gradient) const {
    gradient = VectorXd::Zero(size());
    const double tau = settings_.intercepts ? std::exp(at[log_tau_]) : 0;
    const double log_noise = settings_.noise ? at[log_noise_] : std::log(rows_.noise);
    const VectorXd z = rows_.x * at.head(columns_);
    VectorXd slopes(z.size());
    double sum = 0;
    for (Index i = 0; i < z.size(); ++i) {
      const Index u = shared_ + (sites_ > 0 ? Index(rows_.site[std::size_t(i)]) : 0);
      const double own = sites_ > 0 ? tau * at[u] : 0;
      const RowLoss loss = row_loss(rows_.target, z[i] + own, rows_.y[i], log_noise);
      sum += loss.value;
      slopes[i] = loss.by_z;
      if (sites_ > 0) {
        gradient[u] += tau * loss.by_z;
        gradient[log_tau_] += own * loss.by_z;
      }
      if (settings_.noise) gradient[log_noise_] += loss.by_log_noise;
    }
    gradient.head(columns_) = rows_.x.transpose() * slopes;
    const auto normal = [&](Index i, double mean, double precision) {
      sum += 0.5 * precision * (at[i] - mean) * (at[i] - mean);
      gradient[i] += precision * (at[i] - mean);
    };
    for (Index i = 0; i < columns_; ++i) normal(i, settings_.prior_mean, settings_.prior_precision);
    if (settings_.intercepts) normal(log_tau_, prior_tau_, 1);
    if (settings_.noise) normal(log_noise_, prior_noise_, 1);
    for (Index i = shared_; i < size(); ++i) normal(i, 0, 1);
    return sum;
  }

  VectorXd start() const {
    VectorXd at = VectorXd::Zero(size());
    if (settings_.intercepts) at[log_tau_] = prior_tau_;
    if (settings_.noise) at[log_noise_] = prior_noise_;
    return at;
  }
  // b of every site.
  VectorXd intercepts(const VectorXd& at) const {
    return at[columns_ - 1] + (std::exp(at[log_tau_]) * at.tail(sites_)).array();
  }

 private:
  const PooledRows& rows_;
  HierarchySettings settings_;
  Index columns_, log_tau_, log_noise_, shared_, sites_ = 0;
  double prior_noise_ = 0, prior_tau_ = std::log(0.5);
};

// HMC in the coordinates φ of place = centre + root φ. The step's length follows the share that is accepted
// while a chain warms up.
class Chain {
 public:
  Chain(const Hierarchy& energy, VectorXd start, Stream stream)
      : energy_(energy),
        place_(std::move(start)),
        root_(MatrixXd::Identity(energy.size(), energy.size())),
        stream_(std::move(stream)) {
    value_ = energy_.value(place_, gradient_);
  }

  // Draws as columns; `learns`: the step is still being found.
  MatrixXd draw(int count, bool learns) {
    MatrixXd draws(place_.size(), count);
    double log_step = std::log(step_);
    for (int i = 0; i < count; ++i) {
      const double accepted = move();
      if (learns) {
        log_step += (accepted - 0.85) / std::pow(i + 10.0, 0.6);
        step_ = std::exp(log_step);
      }
      draws.col(i) = place_;
    }
    return draws;
  }

  void precondition(const MatrixXd& draws) {
    const VectorXd mean = draws.rowwise().mean();
    const MatrixXd gap = draws.colwise() - mean;
    MatrixXd covariance = gap * gap.transpose() / double(draws.cols());
    covariance += 0.05 * MatrixXd(covariance.diagonal().asDiagonal());
    covariance.diagonal().array() += 1e-9;
    root_ = covariance.llt().matrixL();
    step_ = 0.3;
  }

 private:
  double move() {
    const int leaps =
        std::clamp(int((0.5 + stream_.uniform()) * 1.5 / step_), 1, 60);  // about a quarter turn
    VectorXd momentum(place_.size());
    for (double& x : momentum) x = stream_.normal();
    const double before = value_ + 0.5 * momentum.squaredNorm();
    VectorXd place = place_, gradient = gradient_;
    double value = value_;
    for (int i = 0; i < leaps; ++i) {
      momentum -= 0.5 * step_ * (root_.transpose() * gradient);
      place += step_ * (root_ * momentum);
      value = energy_.value(place, gradient);
      momentum -= 0.5 * step_ * (root_.transpose() * gradient);
      if (!std::isfinite(value)) return 0;
    }
    const double chance = std::min(1.0, std::exp(before - value - 0.5 * momentum.squaredNorm()));
    if (stream_.uniform() < chance) {
      place_ = std::move(place);
      gradient_ = std::move(gradient);
      value_ = value;
    }
    return std::isfinite(chance) ? chance : 0;
  }

  const Hierarchy& energy_;
  VectorXd place_, gradient_;
  double value_ = 0, step_ = 0.01;
  MatrixXd root_;
  Stream stream_;
};

}  // namespace

PooledHierarchy sample_hierarchy(const PooledRows& rows, const HierarchySettings& settings,
                                 const SamplerSettings& sampler) {
  const Hierarchy energy(rows, settings);
  std::vector<MatrixXd> shared, sites;
  for (int c = 0; c < sampler.chains; ++c) {
    Stream stream({.seed = sampler.seed, .purpose = Purpose::test, .client = std::uint64_t(c)});
    VectorXd start = energy.start();
    for (double& x : start) x += 0.3 * stream.normal();
    Chain chain(energy, std::move(start), std::move(stream));
    for (const int draws : {300, 500, 1000}) chain.precondition(chain.draw(draws, true));
    chain.draw(std::max(300, sampler.warmup), true);
    const MatrixXd all = chain.draw(sampler.draws, false);
    shared.push_back(all.topRows(energy.shared()));
    if (energy.sites() == 0) continue;
    MatrixXd own(energy.sites(), all.cols());
    for (Index i = 0; i < all.cols(); ++i) own.col(i) = energy.intercepts(all.col(i));
    sites.push_back(std::move(own));
  }
  PooledHierarchy out{.shared = summary_of(shared), .site_mean = {}, .site_deviation = {}};
  if (!sites.empty()) {
    const PooledPosterior own = summary_of(sites);
    out.site_mean = own.mean;
    out.site_deviation = own.deviation;
  }
  return out;
}

}  // namespace fedep
