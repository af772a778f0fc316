// (M) Moments of the chain's samples (Guo+23 Alg. 2). Textbook: Λ_tilted = 1/variance. The
// reference's run adds, each by its setting:
//
//   shrinkage r     variance ← r + (1 - r) variance
//   clip_std w      Λ clipped to mean ± w std over coordinates
//   rescale         Λ ← Λ ‖Λ_I‖/‖Λ‖ with Λ_I = Λ_cavity + α N_k: only the profile is the samples'
//
// Iterates of noiseless SGD are no posterior samples; with `langevin` they are.
#pragma once

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"
#include "fedep/inference/precision.h"
#include "fedep/inference/scaled_identity.h"

namespace fedep {

template <Storage V>
Gaussian<V> sample_moments(const Cohort<V>& cohort, std::size_t row, const V& mean,
                           const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const double r = settings.shrinkage;
  const V one = constant_like(mean, Scalar(1));
  V lambda = one / (Scalar(1 - r) * cohort.variance(row) + Scalar(r));
  lambda = clip_to_spread(std::move(lambda), settings.clip_std);
  if (settings.rescale) {
    const V identity = scaled_identity(cohort, row, mean, settings).lambda_full();
    lambda = Scalar(norm(identity) / norm(lambda)) * lambda;
  }
  return from_mean(mean, std::move(lambda));
}

}  // namespace fedep
