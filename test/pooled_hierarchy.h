// What intercepts of clients' own and estimated noise are measured against: the whole hierarchical model on
// the rows of all clients put together, by Hamiltonian Monte Carlo. Only a comparison may do this.
//
//   y ~ p(y | xβ + m + τ u_k),   u_k ~ N(0, 1),   β, m ~ N(mean, 1/precision),
//   log τ ~ N(log 0.5 c, 1),   log σ ~ N(log sd of the outcome, 1)
//
// c is the outcome's sd where it is a number, else 1.
//
//   const PooledHierarchy exact = sample_hierarchy(pooled_rows(*data), {.intercepts = true});
//   exact.shared.mean      // of β, m, log τ, log σ
#pragma once

#include "test/pooled_posterior.h"

namespace fedep {

struct HierarchySettings {
  bool intercepts = false, noise = false;
  double prior_mean = 0, prior_precision = 1;  // of β and m
  double outcome_deviation = 0;                // 0: of the rows
};

struct PooledHierarchy {
  PooledPosterior shared;  // of β, m, then log τ and log σ where there are such
  Eigen::VectorXd site_mean, site_deviation;  // of b_k = m + τ u_k
};

PooledHierarchy sample_hierarchy(const PooledRows& rows, const HierarchySettings& settings,
                                 const SamplerSettings& sampler = {});

}  // namespace fedep
