// Many steps of a chain where the data give no gradient, m ← μ m + (λ θ - η)/N_k, θ ← θ - lr m, at
// the price of one pass over memory.
//
//   FreeMap map;                                                    // no step at all
//   for (int k = 0; k < steps; ++k) map = next(map, numbers, lambda);
#pragma once

#include <cstddef>
#include <span>

#include "fedep/sim/chain/sgd_update.h"

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

// A step down a gradient g and k steps without one:
//
//   θ' = θ - by_r r - by_m m - by_g g,   m' = m_by_r r + m_by_m m + m_by_g g,
//   Σ_{j≤k+1} θ_j = (k + 1) θ - sum_by_r r - sum_by_m m - sum_by_g g
struct GradientMap {
  float by_r, by_m, by_g;
  float m_by_r, m_by_m, m_by_g;
  float sum_by_r, sum_by_m, sum_by_g;
  float steps;  // k + 1
};

// From the maps of k and of k + 1 steps.
GradientMap with_gradient(const FreeMap& map, const FreeMap& one_more, std::size_t k,
                          const SgdNumbers& numbers, double lambda);

struct RowPrior {
  const float* eta;
  const float* lambda;
};

// Some steps of a chain's way, and what happens at their end.
struct FreeStretch {
  std::size_t steps = 0;
  int sample = 0;        // the number of the sample taken there, from 1; 0: none
  float averaged = 0;    // that sample is the sum of the iterates over this; 0: the last iterate
  bool new_sum = false;  // sums of iterates begin anew
};

// What has become of the coordinates at the end; what is null is not written.
struct FreeEnd {
  float* theta;
  float* sum;      // of the iterates
  float* mean;     // of the samples,
  float* squares;  // and summed squares about it
};

// The whole way from theta on with no momentum, for Λ = lambda + decay of `width` coordinates.
void travel(const SgdNumbers& numbers, std::span<const FreeStretch> way, std::size_t width,
            const RowPrior& prior, float decay, const float* theta, const FreeEnd& end);

}  // namespace fedep
