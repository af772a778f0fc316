#include "test/pooled_posterior.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// -log p(y | z) of one row up to a constant, what its outcome is on average there, and how fast that
// changes with z. Written apart from the methods' own, which are measured against this.
struct RowEnergy {
  TargetKind target;
  double noise;

  double loss(double z, double y) const {
    if (target == TargetKind::real) return 0.5 * (y - z) * (y - z) / (noise * noise);
    if (target == TargetKind::count) return std::exp(z) - y * z;
    return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - y * z;  // without overflow
  }
  double slope(double z, double y) const {  // of the loss
    if (target == TargetKind::real) return (z - y) / (noise * noise);
    if (target == TargetKind::count) return std::exp(z) - y;
    return 1 / (1 + std::exp(-z)) - y;
  }
  double curvature(double z) const {
    if (target == TargetKind::real) return 1 / (noise * noise);
    if (target == TargetKind::count) return std::exp(z);
    const double p = 1 / (1 + std::exp(-z));
    return p * (1 - p);
  }
};

// -log p(θ | rows) up to a constant, and its derivatives.
class Energy {
 public:
  Energy(const PooledRows& rows, double precision)
      : rows_(rows), row_{rows.target, rows.noise}, precision_(precision) {}

  double value(const VectorXd& theta) const {
    const VectorXd z = rows_.x * theta;
    double loss = 0;
    for (Eigen::Index i = 0; i < z.size(); ++i) loss += row_.loss(z[i], rows_.y[i]);
    return loss + 0.5 * precision_ * theta.squaredNorm();
  }
  VectorXd gradient(const VectorXd& theta) const {
    VectorXd z = rows_.x * theta;
    for (Eigen::Index i = 0; i < z.size(); ++i) z[i] = row_.slope(z[i], rows_.y[i]);
    return rows_.x.transpose() * z + precision_ * theta;
  }
  MatrixXd hessian(const VectorXd& theta) const {
    VectorXd z = rows_.x * theta;
    for (double& one : z) one = row_.curvature(one);
    MatrixXd h = rows_.x.transpose() * z.asDiagonal() * rows_.x;
    h.diagonal().array() += precision_;
    return h;
  }

 private:
  const PooledRows& rows_;
  RowEnergy row_;
  double precision_;
};

// Newton's method with the step halved until the energy falls; the energy is convex.
VectorXd find_mode(const Energy& energy, Eigen::Index size) {
  VectorXd theta = VectorXd::Zero(size);
  for (int step = 0; step < 100; ++step) {
    const VectorXd direction = energy.hessian(theta).llt().solve(energy.gradient(theta));
    if (direction.norm() < 1e-12) break;
    double scale = 1;
    while (scale > 1e-6 && energy.value(theta - scale * direction) > energy.value(theta)) {
      scale /= 2;
    }
    theta -= scale * direction;
  }
  return theta;
}

// One chain in the coordinates φ of θ = mode + L⁻ᵀ φ, where H = L Lᵀ at the mode: there the
// posterior is nearly a standard normal.
MatrixXd run_chain(const Energy& energy, const VectorXd& mode, const MatrixXd& hessian,
                   const SamplerSettings& settings, int chain, double& accepted) {
  constexpr int kLeapfrogs = 8;
  const Eigen::LLT<MatrixXd> factor(hessian);
  const auto upper = factor.matrixU();
  const auto theta_of = [&](const VectorXd& phi) -> VectorXd { return mode + upper.solve(phi); };
  const auto force = [&](const VectorXd& phi) -> VectorXd {
    return factor.matrixL().solve(energy.gradient(theta_of(phi)));
  };
  Stream stream({.seed = settings.seed, .purpose = Purpose::test, .client = std::uint64_t(chain)});
  const auto normals = [&] {
    VectorXd out(mode.size());
    for (double& x : out) x = stream.normal();
    return out;
  };

  VectorXd phi = 2 * normals();
  double potential = energy.value(theta_of(phi));
  VectorXd slope = force(phi);
  MatrixXd draws(mode.size(), settings.draws);
  for (int draw = -settings.warmup; draw < settings.draws; ++draw) {
    const double step = 0.1 + 0.2 * stream.uniform();  // so that no coordinate comes full circle
    const VectorXd start = normals();
    VectorXd momentum = start, place = phi, there = slope;
    for (int i = 0; i < kLeapfrogs; ++i) {
      momentum -= 0.5 * step * there;
      place += step * momentum;
      there = force(place);
      momentum -= 0.5 * step * there;
    }
    const double reached = energy.value(theta_of(place));
    const double gain =
        potential + 0.5 * start.squaredNorm() - reached - 0.5 * momentum.squaredNorm();
    if (std::log(stream.uniform()) < gain) {
      phi = place;
      slope = there;
      potential = reached;
      if (draw >= 0) accepted += 1;
    }
    if (draw >= 0) draws.col(draw) = theta_of(phi);
  }
  return draws;
}

double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size());
}
double variance_of(const std::vector<double>& x) {  // n - 1
  const double mean = mean_of(x);
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return sum / double(x.size() - 1);
}

// Autocovariance at a lag, divided by n.
double autocovariance(const std::vector<double>& x, std::size_t lag) {
  const double mean = mean_of(x);
  double sum = 0;
  for (std::size_t i = lag; i < x.size(); ++i) sum += (x[i] - mean) * (x[i - lag] - mean);
  return sum / double(x.size());
}

struct Mixing {
  double rhat, effective;
};

// Of one coefficient, whose chains have been cut in halves.
Mixing mixing(const std::vector<std::vector<double>>& halves) {
  const double n = double(halves[0].size()), m = double(halves.size());
  std::vector<double> means, variances;
  for (const auto& half : halves) {
    means.push_back(mean_of(half));
    variances.push_back(variance_of(half));
  }
  const double within = mean_of(variances);
  const double total = (n - 1) / n * within + variance_of(means);
  const auto correlation = [&](std::size_t lag) {
    double covariance = 0;
    for (const auto& half : halves) covariance += autocovariance(half, lag) / m;
    return 1 - (within - covariance * n / (n - 1)) / total;
  };
  double time = -1;  // 1 + 2 Σ ρ_t = -1 + 2 Σ (ρ_2t + ρ_2t+1), while these pairs are positive
  for (std::size_t lag = 0; lag + 1 < halves[0].size(); lag += 2) {
    const double pair = correlation(lag) + correlation(lag + 1);
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return {std::sqrt(total / within), n * m / std::max(time, 1e-3)};
}

std::vector<std::vector<double>> halves_of(const std::vector<MatrixXd>& chains, Eigen::Index row) {
  std::vector<std::vector<double>> halves;
  for (const MatrixXd& draws : chains) {
    const Eigen::Index half = draws.cols() / 2;
    for (const Eigen::Index begin : {Eigen::Index(0), half}) {
      std::vector<double> part;
      for (Eigen::Index i = begin; i < begin + half; ++i) part.push_back(draws(row, i));
      halves.push_back(std::move(part));
    }
  }
  return halves;
}

MatrixXd permilles_of(const std::vector<MatrixXd>& chains) {
  MatrixXd out(chains[0].rows(), 999);
  std::vector<double> all;
  for (Eigen::Index i = 0; i < out.rows(); ++i) {
    all.clear();
    for (const MatrixXd& draws : chains) {
      for (Eigen::Index j = 0; j < draws.cols(); ++j) all.push_back(draws(i, j));
    }
    std::ranges::sort(all);
    for (Eigen::Index p = 0; p < out.cols(); ++p) {
      out(i, p) = all[std::size_t(double(p + 1) / 1000 * double(all.size()))];
    }
  }
  return out;
}

}  // namespace

PooledRows pooled_rows(const Dataset& data, double noise) {
  const std::size_t features = data.info().feature_count();
  std::size_t rows = 0;
  for (const auto& client : data.clients()) rows += client.second;
  PooledRows out{MatrixXd::Ones(Eigen::Index(rows), Eigen::Index(features + 1)),
                 VectorXd(Eigen::Index(rows)), data.info().target, noise};
  const bool yes_no = out.target == TargetKind::binary;
  Eigen::Index row = 0;
  Batch batch;
  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    std::vector<std::uint32_t> all(data.clients()[k].second);
    std::iota(all.begin(), all.end(), 0u);
    data.train_batch(k, all, nullptr, batch);
    for (std::size_t i = 0; i < batch.size; ++i, ++row) {
      for (std::size_t j = 0; j < features; ++j) {
        out.x(row, Eigen::Index(j)) = double(batch.dense[i * features + j]);
      }
      out.site.push_back(k);
      out.y[row] = yes_no ? double(batch.labels[i]) : double(batch.reals[i]);
    }
  }
  return out;
}

PooledPosterior summary_of(const std::vector<MatrixXd>& chains) {
  const Eigen::Index size = chains[0].rows();
  const double draws = double(chains.size()) * double(chains[0].cols());
  PooledPosterior out;
  out.mean = VectorXd::Zero(size);
  for (const MatrixXd& chain : chains) out.mean += chain.rowwise().sum() / draws;
  VectorXd squares = VectorXd::Zero(size);
  for (const MatrixXd& chain : chains) {
    squares += (chain.colwise() - out.mean).rowwise().squaredNorm();
  }
  out.deviation = (squares / (draws - 1)).cwiseSqrt();
  out.permilles = permilles_of(chains);
  out.least_effective_draws = draws * 1e3;
  for (Eigen::Index i = 0; i < size; ++i) {
    const Mixing one = mixing(halves_of(chains, i));
    out.worst_rhat = std::max(out.worst_rhat, one.rhat);
    out.least_effective_draws = std::min(out.least_effective_draws, one.effective);
  }
  return out;
}

PooledPosterior sample_posterior(const PooledRows& rows, double prior_precision,
                                 const SamplerSettings& settings) {
  const Energy energy(rows, prior_precision);
  PooledPosterior out;
  out.mode = find_mode(energy, rows.x.cols());
  const MatrixXd hessian = energy.hessian(out.mode);
  out.curvature_deviation = hessian.diagonal().array().rsqrt();
  out.laplace_deviation = hessian.llt()
                              .solve(MatrixXd::Identity(hessian.rows(), hessian.cols()))
                              .diagonal()
                              .cwiseSqrt();

  std::vector<MatrixXd> chains;
  for (int chain = 0; chain < settings.chains; ++chain) {
    chains.push_back(run_chain(energy, out.mode, hessian, settings, chain, out.acceptance));
  }
  const PooledPosterior found = summary_of(chains);
  out.acceptance /= double(settings.chains) * double(settings.draws);
  out.mean = found.mean;
  out.deviation = found.deviation;
  out.permilles = found.permilles;
  out.worst_rhat = found.worst_rhat;
  out.least_effective_draws = found.least_effective_draws;
  return out;
}

}  // namespace fedep
