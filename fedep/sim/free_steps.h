// Many steps of a chain where the data give no gradient, m ← μ m + (λ θ - η)/N_k, θ ← θ - lr m, at
// the price of one pass over memory.
//
//   FreeMap map;                                                    // no step at all
//   for (int k = 0; k < steps; ++k) map = next(map, numbers, lambda);
//   advance_isotropic(map, steps, width, {eta, &lambda}, {theta, momentum, nullptr});
#pragma once

#include <cstddef>

#include "fedep/sim/sgd_update.h"

namespace fedep {

// Where λ is one number, k steps from (θ, m) are linear in r = λ θ - η and m:
//
//   θ_k = θ - by_r r - by_m m,   m_k = m_by_r r + m_by_m m,   Σ_{j≤k} θ_j = k θ - sum_by_r r - sum_by_m m
struct FreeMap {
  double by_r = 0, by_m = 0;
  double m_by_r = 0, m_by_m = 1;
  double sum_by_r = 0, sum_by_m = 0;
};

// Of one step more.
FreeMap next(const FreeMap& map, const SgdNumbers& numbers, double lambda);

struct FreeRow {
  float* theta;
  float* momentum;
  float* sum;  // gains the iterates after each step; may be null
};

struct RowPrior {
  const float* eta;
  const float* lambda;  // one element, or as many as the row
};

void advance_isotropic(const FreeMap& map, std::size_t steps, std::size_t width,
                       const RowPrior& prior, const FreeRow& row);

// λ differs between coordinates: steps are made one by one, in registers.
void advance_diagonal(const SgdNumbers& numbers, std::size_t steps, std::size_t width,
                      const RowPrior& prior, const FreeRow& row);

}  // namespace fedep
