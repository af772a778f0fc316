// (L) Laplace's approximation with the diagonal Fisher information (Guo+23 Eq. 5), at the mean of
// the chain's samples, labels drawn from the model:
//
//   Λ_tilted = Λ_cavity + s (F + wd N_k),      F = N_k × mean over examples of squared gradients.
//
// Textbook: s = 1. The reference multiplies by s = 500 and clips F to mean ± 2 std.
#pragma once

#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"
#include "fedep/inference/precision.h"

namespace fedep {

namespace detail {

// The sum over a row's batches of squared gradients at `means`.
template <Storage V>
std::vector<V> fisher_by_steps(Cohort<V>& cohort, const std::vector<V>& means, int epochs) {
  int batches = 0;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    batches = std::max(batches, cohort.fisher_batches(row, epochs));
  }
  std::vector<V> fisher;
  for (const V& mean : means) fisher.push_back(constant_like(mean, typename V::Scalar(0)));
  for (int t = 0; t < batches; ++t) {
    const std::vector<V> squares = cohort.squared_gradients(means, t, epochs, 0);
    for (std::size_t row = 0; row < squares.size(); ++row) fisher[row] = fisher[row] + squares[row];
  }
  return fisher;
}

}  // namespace detail

template <Storage V>
std::vector<Gaussian<V>> laplace(Cohort<V>& cohort, const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const std::vector<V> means = means_of(cohort);
  std::vector<V> fisher = cohort.fisher_sum(settings.epochs);
  if (fisher.empty()) fisher = detail::fisher_by_steps(cohort, means, settings.epochs);
  std::vector<Gaussian<V>> tilted;
  for (std::size_t row = 0; row < cohort.clients(); ++row) {
    const double n = cohort.examples(row);
    const int own_batches = cohort.fisher_batches(row, settings.epochs);
    const double weight = own_batches > 0 ? n / own_batches : 0;
    const V f = clip_to_spread(Scalar(weight) * fisher[row], settings.clip_std);
    const V local = Scalar(settings.scale) * (f + Scalar(cohort.weight_decay() * n));
    tilted.push_back(from_mean(means[row], cohort.cavity(row).lambda_full() + local));
  }
  return tilted;
}

}  // namespace fedep
