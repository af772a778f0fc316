// (V) Natural-gradient variational inference for the precision (Guo+23 Alg. 5); the mean stays the
// mean of the chain's samples. For minibatches t = 1, 2, …, over `epochs` epochs, with S = samples:
//
//   θ_i ~ N(mean, 1/Λ),   F = average over i of the batch's mean squared gradient at θ_i
//   ν ← β ν + (1 - β) F,   Λ ← N_k ν + Λ_p,      ν_0 = initial_scale,  Λ_p = Λ_cavity + wd N_k
//
//   Λ_tilted = Λ_cavity + s (N_k ν + wd N_k)
//
// There is no correction for ν_0 = 0: after few steps ν is small by 1 - β^t, as in the reference,
// which also clips F to mean ± 2 std and multiplies by s = 500.
#pragma once

#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"
#include "fedep/inference/precision.h"
#include "fedep/message/check.h"

namespace fedep {

namespace detail {

// Every row's ν after its last batch.
template <Storage V>
std::vector<V> running_fisher_by_steps(Cohort<V>& cohort, const std::vector<V>& means,
                                       const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const std::size_t rows = cohort.clients();
  std::vector<V> nu, prior, lambda;
  int batches = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const Scalar n = Scalar(cohort.examples(row));
    nu.push_back(constant_like(means[row], Scalar(settings.initial_scale)));
    prior.push_back(cohort.cavity(row).lambda_full() + Scalar(cohort.weight_decay()) * n);
    lambda.push_back(n * nu[row] + prior[row]);
    batches = std::max(batches, cohort.fisher_batches(row, settings.epochs));
  }
  for (int t = 0; t < batches; ++t) {
    std::vector<V> fisher, root;
    for (std::size_t row = 0; row < rows; ++row) root.push_back(sqrt(lambda[row]));
    for (int draw = 0; draw < settings.samples; ++draw) {
      std::vector<V> theta;
      for (std::size_t row = 0; row < rows; ++row) {
        theta.push_back(cohort.draw_weights(row, t, draw, means[row], root[row]));
      }
      std::vector<V> squares = cohort.squared_gradients(theta, t, settings.epochs, draw);
      for (std::size_t row = 0; row < rows; ++row) {
        if (draw == 0) {
          fisher.push_back(std::move(squares[row]));
        } else {
          fisher[row] = fisher[row] + squares[row];
        }
      }
    }
    for (std::size_t row = 0; row < rows; ++row) {
      if (t >= cohort.fisher_batches(row, settings.epochs)) continue;
      const V f = clip_to_spread(fisher[row] / Scalar(settings.samples), settings.clip_std);
      const double beta = settings.decay;
      nu[row] = Scalar(beta) * nu[row] + Scalar(1 - beta) * f;
      lambda[row] = Scalar(cohort.examples(row)) * nu[row] + prior[row];
    }
  }
  return nu;
}

}  // namespace detail

inline void check_ngvi(const InferenceSettings& settings, int) {
  // Draws of a step are told apart by so many bits of their addresses.
  if (settings.samples > 127) {
    fail("phase.inference", "samples", "at most 127", fmt::format("{}", settings.samples));
  }
}

template <Storage V>
std::vector<Gaussian<V>> ngvi(Cohort<V>& cohort, const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const std::vector<V> means = means_of(cohort);
  std::vector<V> nu = cohort.running_fisher(settings);
  if (nu.empty()) nu = detail::running_fisher_by_steps(cohort, means, settings);
  std::vector<Gaussian<V>> tilted;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    const Scalar n = Scalar(cohort.examples(row));
    const V local = Scalar(settings.scale) * (n * nu[row] + Scalar(cohort.weight_decay()) * n);
    tilted.push_back(from_mean(means[row], cohort.cavity(row).lambda_full() + local));
  }
  return tilted;
}

}  // namespace fedep
