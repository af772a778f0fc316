// Inference without error, for the toy's Gaussian clients: the tilted distribution (cavity times
// likelihood) is itself a Gaussian, dense, and its projection onto the mean-field family has a
// closed form. These are what the approximate methods of this folder aim at.
//
//   const auto tilted = exact_tilted(cavity, p);                      // Guo+23 Alg. 4: p_k q_{-k}
//   const auto q = project(tilted, cavity, Projection::diagonal);     // the client's new view of
//   the global const auto factor = quotient(q, cavity);
#pragma once

#include <cstddef>
#include <utility>

#include <Eigen/Core>

#include "fedep/message/dense_gaussian.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// The cavity may be flat or improper as long as the product with p is a distribution.
template <class T, int D>
DenseGaussian<T, D> exact_tilted(const Gaussian<HostVector<T>>& cavity,
                                 const DenseGaussian<T, D>& p) {
  check_same_size("exact_tilted", "cavity", std::size_t(p.size()), cavity.size());
  DenseGaussian<T, D> tilted = product(to_dense<T, D>(cavity), p);
  check_proper("exact_tilted", "cavity times likelihood", tilted);
  return tilted;
}

// argmin_q KL(tilted ‖ q) over diagonal Gaussians: same mean, same variance in every coordinate
// (moment matching).
template <class T, int D>
Gaussian<HostVector<T>> project_diagonal(const DenseGaussian<T, D>& tilted) {
  const typename DenseGaussian<T, D>::Matrix sigma = covariance(tilted);
  const typename DenseGaussian<T, D>::Vector mu = sigma * tilted.eta;
  HostVector<T> eta(std::size_t(mu.size()));
  HostVector<T> lambda(std::size_t(mu.size()));
  for (Eigen::Index i = 0; i < mu.size(); ++i) {
    lambda[std::size_t(i)] = T(1) / sigma(i, i);
    eta[std::size_t(i)] = mu[i] / sigma(i, i);
  }
  return {std::move(eta), std::move(lambda)};
}

// Same mean; the precision is the cavity's plus a constant, so that the client's factor always has
// precision added_precision * I (Guo+23 Sec. 2.2.2 "scaled identity"; 1 in the toy).
template <class T, int D>
Gaussian<HostVector<T>> project_scaled_identity(const DenseGaussian<T, D>& tilted,
                                                const Gaussian<HostVector<T>>& cavity,
                                                T added_precision = T(1)) {
  check_same_size("project_scaled_identity", "cavity", std::size_t(tilted.size()), cavity.size());
  check_positive("project_scaled_identity", "added_precision", double(added_precision));
  const typename DenseGaussian<T, D>::Vector mu = mean(tilted);
  HostVector<T> center(std::size_t(mu.size()));
  for (Eigen::Index i = 0; i < mu.size(); ++i) center[std::size_t(i)] = mu[i];
  if (cavity.isotropic()) return from_mean(center, T(cavity.lambda_scalar() + added_precision));
  return from_mean(center, cavity.lambda_vector() + added_precision);
}

enum class Projection { diagonal, scaled_identity };

inline Family family_of(Projection projection) {
  return projection == Projection::diagonal ? Family::diagonal : Family::isotropic;
}

template <class T, int D>
Gaussian<HostVector<T>> project(const DenseGaussian<T, D>& tilted,
                                const Gaussian<HostVector<T>>& cavity, Projection projection) {
  return projection == Projection::diagonal ? project_diagonal(tilted)
                                            : project_scaled_identity(tilted, cavity);
}

}  // namespace fedep
