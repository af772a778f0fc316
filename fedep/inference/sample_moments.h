// (M) Moments of the chain's samples (Guo+23 Alg. 2). Textbook: Λ_tilted = 1/variance, or with
// `unbiased` (n - 3)/(n - 1) of it, since 1/variance of n samples is too large on average. The
// reference's run adds, each by its setting:
//
//   shrinkage r     variance ← r + (1 - r) variance
//   clip_std w      Λ clipped to mean ± w std over coordinates
//   rescale         Λ ← Λ ‖Λ_I‖/‖Λ‖ with Λ_I = Λ_cavity + α N_k: only the profile is the samples'
//
// Iterates of noiseless SGD are no posterior samples; with `langevin` they are.
#pragma once

#include <utility>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"
#include "fedep/inference/precision.h"
#include "fedep/inference/scaled_identity.h"
#include "fedep/message/check.h"

namespace fedep {

namespace detail {

template <Storage V>
Gaussian<V> sample_moments_of(const Cohort<V>& cohort, std::size_t row, const V& mean,
                              const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const double r = settings.shrinkage;
  const V one = constant_like(mean, Scalar(1));
  V lambda = one / (Scalar(1 - r) * cohort.variance(row) + Scalar(r));
  if (settings.unbiased) {
    const double n = double(cohort.epochs());
    lambda = Scalar((n - 3) / (n - 1)) * lambda;
  }
  lambda = clip_to_spread(std::move(lambda), settings.clip_std);
  if (settings.rescale) {
    const V identity = scaled_identity_of(cohort, row, mean, settings).lambda_full();
    lambda = Scalar(norm(identity) / norm(lambda)) * lambda;
  }
  return from_mean(mean, std::move(lambda));
}

}  // namespace detail

inline void check_sample_moments(const InferenceSettings& settings, int chain_epochs) {
  if (chain_epochs < 2) {
    fail("phase.inference", "client.epochs with sample_moments", "at least 2",
         fmt::format("{}", chain_epochs));
  }
  if (settings.unbiased && chain_epochs < 4) {
    fail("phase.inference", "client.epochs with unbiased", "at least 4",
         fmt::format("{}", chain_epochs));
  }
  if (settings.shrinkage == 0 && !settings.langevin) {
    throw InputError(
        "phase.inference: sample_moments needs shrinkage or langevin: variances of noiseless SGD "
        "vanish where it has converged");
  }
}

template <Storage V>
std::vector<Gaussian<V>> sample_moments(Cohort<V>& cohort, const InferenceSettings& settings) {
  std::vector<Gaussian<V>> tilted;
  if (!settings.unbiased) tilted = cohort.sample_moments_of_all(settings);
  if (!tilted.empty()) return tilted;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    // Who has no examples has made no samples.
    if (cohort.examples(row) == 0) {
      tilted.push_back(cohort.cavity(row));
    } else {
      tilted.push_back(detail::sample_moments_of(cohort, row, cohort.mean(row), settings));
    }
  }
  return tilted;
}

}  // namespace fedep
