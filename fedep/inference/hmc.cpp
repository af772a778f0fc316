#include "fedep/inference/hmc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/inference/glm_energy.h"
#include "fedep/inference/newton.h"
#include "fedep/inference/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr double kWantedAcceptance = 0.8;
constexpr int kMostLeapfrogs = 200;

// Moves log ε until the acceptance is the wanted one, then gives an average of where it has been
// (Hoffman+14, Algorithm 5; constants are theirs).
class StepLength {
 public:
  explicit StepLength(double start) : anchor_(std::log(10 * start)), now_(std::log(start)) {}

  void learn(double acceptance) {
    ++count_;
    const double share = 1 / (count_ + 10);
    lack_ += share * (kWantedAcceptance - acceptance - lack_);
    now_ = anchor_ - std::sqrt(count_) / 0.05 * lack_;
    const double weight = std::pow(count_, -0.75);
    average_ += weight * (now_ - average_);
  }
  double now() const { return std::exp(now_); }
  double learned() const { return std::exp(average_); }

 private:
  double anchor_, now_, average_ = 0, lack_ = 0, count_ = 0;
};

// One chain in the coordinates φ of θ = mode + L⁻ᵀ φ, where L Lᵀ is the Hessian at the mode.
class Chain {
 public:
  Chain(const Energy& energy, const EnergyMode& mode, const Address& address)
      : energy_(energy), mode_(mode), stream_(address), phi_(normals()) {
    potential_ = energy_.value(theta(phi_));
    force_ = force(phi_);
    if (std::isfinite(potential_)) return;
    phi_.setZero();  // the mode
    potential_ = energy_.value(mode_.theta);
    force_ = force(phi_);
  }

  // One trajectory of leapfrogs. Gives back the probability that its end was accepted with.
  double move(double step) {
    const double quarter_turn = 0.5 * std::numbers::pi;
    const double length = quarter_turn * (0.5 + stream_.uniform());
    const int leapfrogs = std::clamp(int(std::ceil(length / step)), 1, kMostLeapfrogs);
    const Eigen::VectorXd start = normals();
    Eigen::VectorXd momentum = start, place = phi_, there = force_;
    for (int i = 0; i < leapfrogs; ++i) {
      momentum -= 0.5 * step * there;
      place += step * momentum;
      there = force(place);
      momentum -= 0.5 * step * there;
    }
    const double reached = energy_.value(theta(place));
    const double gain =
        potential_ + 0.5 * start.squaredNorm() - reached - 0.5 * momentum.squaredNorm();
    const double acceptance = std::isfinite(gain) ? std::min(1.0, std::exp(gain)) : 0.0;
    if (stream_.uniform() < acceptance) {
      phi_ = std::move(place);
      force_ = std::move(there);
      potential_ = reached;
    }
    return acceptance;
  }

  Eigen::VectorXd theta() const { return theta(phi_); }

 private:
  Eigen::VectorXd normals() {
    Eigen::VectorXd out(mode_.theta.size());
    for (double& x : out) x = stream_.normal();
    return out;
  }
  Eigen::VectorXd theta(Eigen::VectorXd phi) const {
    const int d = int(phi.size());
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, d, mode_.factor.data(), d,
                phi.data(), 1);
    return mode_.theta + phi;
  }
  Eigen::VectorXd force(const Eigen::VectorXd& phi) const {
    Eigen::VectorXd out = energy_.gradient(theta(phi));
    const int d = int(phi.size());
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, d, mode_.factor.data(), d,
                out.data(), 1);
    return out;
  }

  const Energy& energy_;
  const EnergyMode& mode_;
  Stream stream_;
  Eigen::VectorXd phi_, force_;
  double potential_ = 0;
};

// The worst weight's, or that of a square of its distance from the mean. Columns are draws.
double least_effective(const Eigen::MatrixXd& draws, Eigen::Index count) {
  double least = double(count);
  std::vector<double> chain(std::size_t(count), 0.0);
  for (Eigen::Index j = 0; j < draws.rows(); ++j) {
    const double mean = draws.row(j).head(count).mean();
    for (Eigen::Index t = 0; t < count; ++t) chain[std::size_t(t)] = draws(j, t) - mean;
    least = std::min(least, effective_draws(chain));
    for (double& x : chain) x *= x;
    least = std::min(least, effective_draws(chain));
  }
  return least;
}

// Λ and η of draws, corrected for their number.
HmcTilted corrected_moments(const std::string& what, const Eigen::MatrixXd& draws,
                            Eigen::Index count, double effective) {
  const double n = double(count), d = double(draws.rows());
  Eigen::VectorXd mean = draws.leftCols(count).rowwise().mean();
  const Eigen::MatrixXd gaps = draws.leftCols(count).colwise() - mean;
  Eigen::MatrixXd factor = Eigen::MatrixXd::Zero(draws.rows(), draws.rows());
  add_gram({gaps.data(), std::size_t(gaps.size())},
           std::vector<double>(std::size_t(count), 1 / (n - 1)), factor);
  if (!factorise(factor)) fail(what, "the covariance of draws", "positive definite", "not");
  const Eigen::MatrixXd lambda = (effective - d - 2) / (effective - 1) * inverse(factor);
  HmcTilted out{tilted_of(what, {lambda * mean, lambda})};
  out.mean.swap(mean);
  out.effective = effective;
  out.sweeps = int(count);
  return out;
}

}  // namespace

double effective_draws(std::span<const double> chain) {
  const std::size_t n = chain.size();
  double mean = n == 0 ? 0 : chain[0];  // exactly, of a chain that never moved
  for (const double x : chain) mean += (x - chain[0]) / double(n);
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < n; ++i) sum += (chain[i] - mean) * (chain[i - lag] - mean);
    return sum / double(n);
  };
  const double variance = covariance(0);
  if (!(variance > 0)) return 0;
  double time = -1;  // 1 + 2 Σ ρ_t = -1 + 2 Σ (ρ_2t + ρ_2t+1), while these pairs are positive
  for (std::size_t lag = 0; lag + 1 < n; lag += 2) {
    const double pair = (covariance(lag) + covariance(lag + 1)) / variance;
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return double(n) / std::max(1.0, time);
}

HmcTilted hmc_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows,
                     const HmcSettings& settings, const Address& address) {
  const std::string what = fmt::format("hmc of client {}", rows.client);
  check_tilted_arguments(what, cavity, rows);
  const GlmEnergy energy(cavity, rows);
  const EnergyMode mode = find_mode(what, energy, start_of(cavity, energy));
  const double d = double(cavity.size());
  Chain chain(energy, mode, address);
  StepLength step(0.5 * std::pow(d, -0.25));
  for (int i = 0; i < settings.warmup; ++i) step.learn(chain.move(step.now()));

  const double wanted = settings.effective_per_weight * d;
  const Eigen::Index most = Eigen::Index(settings.most_per_weight * d);
  Eigen::Index next = std::min(most, std::max<Eigen::Index>(100, Eigen::Index(1.25 * wanted)));
  Eigen::MatrixXd draws(cavity.size(), next);
  Eigen::Index count = 0;
  double accepted = 0;
  while (true) {
    draws.conservativeResize(Eigen::NoChange, next);
    for (; count < next; ++count) {
      accepted += chain.move(step.learned());
      draws.col(count) = chain.theta();
    }
    const double effective = least_effective(draws, count);
    if (effective >= wanted) {
      HmcTilted out = corrected_moments(what, draws, count, effective);
      out.acceptance = accepted / double(count);
      return out;
    }
    if (count == most) {
      throw RunError(fmt::format("{}: effective draws must be at least {}, but are {:.0f} of {}",
                                 what, wanted, effective, count));
    }
    const double factor = std::clamp(1.2 * wanted / std::max(effective, 1.0), 1.25, 4.0);
    next = std::min(most, Eigen::Index(double(count) * factor));
  }
}

}  // namespace fedep
