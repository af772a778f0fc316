// What a federated posterior is measured against: Bayesian regression (logistic, linear or Poisson) on
// the rows of all clients put together, sampled by Hamiltonian Monte Carlo in double precision. Only a
// comparison may do this; no federated method ever sees pooled rows.
//
//   const PooledPosterior exact = sample_posterior(pooled_rows(*data), 1.0);
//   exact.mean[0], exact.deviation[0], exact.worst_rhat
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Dense>

#include "fedep/data/dataset.h"

namespace fedep {

struct PooledRows {
  Eigen::MatrixXd x;  // [rows, features + 1]: the last column is 1, for the bias
  Eigen::VectorXd y;  // 0 or 1; a number; a count
  TargetKind target = TargetKind::binary;
  double noise = 1;                    // of a number: its deviation
  std::vector<std::size_t> site = {};  // whose row it is
};

// Training rows of all clients, features as the model sees them; a number has this noise.
PooledRows pooled_rows(const Dataset& data, double noise = 1);

struct SamplerSettings {
  int chains = 4;
  int warmup = 500;  // draws left out at a chain's start
  int draws = 5000;  // of each chain
  std::uint64_t seed = 1;
};

struct PooledPosterior {
  Eigen::VectorXd mean, deviation;  // of the draws
  Eigen::VectorXd mode;
  Eigen::VectorXd
      curvature_deviation;  // 1 / √H_ii at the mode: what a diagonal Laplace has at best
  Eigen::VectorXd laplace_deviation;  // √(H⁻¹)_ii at the mode
  Eigen::MatrixXd permilles;  // [coefficients, 999]: quantiles of the draws at 0.001, 0.002, …
  double acceptance = 0;
  double worst_rhat = 0;  // split R̂ (Gelman+13), largest over coefficients
  double least_effective_draws =
      0;  // Geyer's initial positive sequence, smallest over coefficients
};

// Prior N(0, 1/precision) on every coefficient and the bias. Chains start overdispersed around the
// mode, whose curvature preconditions them.
PooledPosterior sample_posterior(const PooledRows& rows, double prior_precision,
                                 const SamplerSettings& settings = {});

// Mean, deviation, permilles, R̂ and effective draws of chains' draws, a row for each number.
PooledPosterior summary_of(const std::vector<Eigen::MatrixXd>& chains);

}  // namespace fedep
