// (I) Scaled identity (Guo+23 Sec. 2.2.2): the client's own precision is not estimated but set,
//
//   Λ_tilted = Λ_cavity + α N_k,      α a precision per example.
//
// With an isotropic cavity the message stays isotropic: eta and one number.
#pragma once

#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"

namespace fedep {

namespace detail {

template <Storage V>
Gaussian<V> scaled_identity_of(const Cohort<V>& cohort, std::size_t row, const V& mean,
                               const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const Gaussian<V>& cavity = cohort.cavity(row);
  const Scalar added = Scalar(settings.alpha * cohort.examples(row));
  if (cavity.isotropic()) return from_mean(mean, Scalar(cavity.lambda_scalar() + added));
  return from_mean(mean, cavity.lambda_vector() + added);
}

}  // namespace detail

template <Storage V>
std::vector<Gaussian<V>> scaled_identity(Cohort<V>& cohort, const InferenceSettings& settings) {
  std::vector<Gaussian<V>> tilted;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    tilted.push_back(detail::scaled_identity_of(cohort, row, cohort.mean(row), settings));
  }
  return tilted;
}

}  // namespace fedep
