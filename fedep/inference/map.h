// (MAP) The chain's last iterate, with the cavity's precision: nothing is said about precisions.
// FedLap's answer (Swaroop+25): factors then hold gradients alone, Λ_tilted = Λ_cavity.
#pragma once

#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"

namespace fedep {

template <Storage V>
std::vector<Gaussian<V>> map_estimate(Cohort<V>& cohort, const InferenceSettings&) {
  std::vector<Gaussian<V>> tilted;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    const Gaussian<V>& cavity = cohort.cavity(row);
    if (cavity.isotropic()) {
      tilted.push_back(from_mean(cohort.iterate(row), cavity.lambda_scalar()));
    } else {
      tilted.push_back(from_mean(cohort.iterate(row), cavity.lambda_vector()));
    }
  }
  return tilted;
}

}  // namespace fedep
