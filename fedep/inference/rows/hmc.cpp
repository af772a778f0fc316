#include "fedep/inference/rows/hmc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/newton.h"
#include "fedep/inference/rows/symmetric_matrix.h"
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

// One weight's draws, as distances from their mean; or the squares of these.
enum class Of { weight, square };
std::vector<double> chain_of(const Eigen::MatrixXd& draws, Eigen::Index count, Eigen::Index weight,
                             Of what) {
  const double mean = draws.row(weight).head(count).mean();
  std::vector<double> chain(std::size_t(count), 0.0);
  for (Eigen::Index t = 0; t < count; ++t) chain[std::size_t(t)] = draws(weight, t) - mean;
  if (what == Of::square) {
    for (double& x : chain) x *= x;
  }
  return chain;
}

// The worst weight's, or that of a square of its distance from the mean. Columns are draws.
double least_effective(const Eigen::MatrixXd& draws, Eigen::Index count) {
  double least = double(count);
  for (Eigen::Index j = 0; j < draws.rows(); ++j) {
    for (const Of what : {Of::weight, Of::square}) {
      least = std::min(least, effective_draws(chain_of(draws, count, j, what)));
    }
  }
  return least;
}

// What a covariance is as good as that many draws of: squares' correlations averaged over weights. The
// worst weight's would be the smallest of many estimates, and its correction of the precision too large;
// what is missing then is missing at every client, and q has the sum of it.
double effective_of_squares(const Eigen::MatrixXd& draws, Eigen::Index count) {
  std::vector<std::vector<double>> squares;
  for (Eigen::Index j = 0; j < draws.rows(); ++j) {
    squares.push_back(chain_of(draws, count, j, Of::square));
  }
  return effective_draws(squares);
}

// Λ and η of draws, corrected for their number.
HmcTilted corrected_moments(const std::string& what, const Eigen::MatrixXd& draws,
                            Eigen::Index count) {
  const double n = double(count), d = double(draws.rows());
  const double effective = effective_of_squares(draws, count);
  Eigen::VectorXd mean = draws.leftCols(count).rowwise().mean();
  const Eigen::MatrixXd gaps = draws.leftCols(count).colwise() - mean;
  Eigen::MatrixXd factor = Eigen::MatrixXd::Zero(draws.rows(), draws.rows());
  add_gram({gaps.data(), std::size_t(gaps.size())},
           std::vector<double>(std::size_t(count), 1 / (n - 1)), factor);
  if (!factorise(factor)) fail(what, "the covariance of draws", "positive definite", "not");
  const Eigen::MatrixXd lambda = (effective - d - 2) / (effective - 1) * inverse(factor);
  HmcTilted out{tilted_of(what, {lambda * mean, lambda})};
  out.mean.swap(mean);
  out.sweeps = int(count);
  return out;
}

}  // namespace

double effective_draws(std::span<const std::vector<double>> chains) {
  const std::size_t n = chains.empty() ? 0 : chains[0].size();
  std::vector<std::vector<double>> standard;  // mean 0, sum of squares 1
  for (const std::vector<double>& chain : chains) {
    double mean = n == 0 ? 0 : chain[0], square = 0;  // exactly, of a chain that never moved
    for (const double x : chain) mean += (x - chain[0]) / double(n);
    std::vector<double> gaps;
    for (const double x : chain) gaps.push_back(x - mean);
    for (const double x : gaps) square += x * x;
    if (!(square > 0)) return 0;
    for (double& x : gaps) x /= std::sqrt(square);
    standard.push_back(std::move(gaps));
  }
  const auto correlation = [&](std::size_t lag) {
    double sum = 0;
    for (const std::vector<double>& chain : standard) {
      for (std::size_t i = lag; i < n; ++i) sum += chain[i] * chain[i - lag];
    }
    return sum / double(standard.size());
  };
  double time = -1;  // 1 + 2 Σ ρ_t = -1 + 2 Σ (ρ_2t + ρ_2t+1), while these pairs are positive
  for (std::size_t lag = 0; lag + 1 < n; lag += 2) {
    const double pair = correlation(lag) + correlation(lag + 1);
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return double(n) / std::max(1.0, time);
}

double effective_draws(const std::vector<double>& chain) {
  return effective_draws(std::span(&chain, 1));
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
      HmcTilted out = corrected_moments(what, draws, count);
      out.effective = effective;
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
