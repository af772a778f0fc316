// The server's step of ADMM in natural parameters, with S the prior times all factors and d̄ the mean
// of the deltas that came, of m clients in all:
//
//   posteriors         q' = (1 - a)(q + d̄) + a S,   a = 1 / (1 + ρ m)        BayesADMM
//   point estimates    θ' = (θ + d̄) + S / m                                 FedDyn
//
// The two are one rule: the minimum of the prior, of the clients' terms linear in S, and of ρ (or mu)
// times the distances to the m clients' answers; in FedDyn the prior is flat, and S has no precision.
// Where nothing moves any more d̄ = 0, so that q = S: what EP stands still at.
#pragma once

#include <cstddef>

#include "fedep/message/gaussian.h"

namespace fedep {

struct AdmmWeights {
  double near = 1;  // of what the clients answered
  double pull = 0;  // of the prior times all factors
};

inline AdmmWeights admm_weights(bool point_estimate, double penalty, std::size_t clients) {
  const double m = double(clients);
  if (point_estimate) return {.near = 1, .pull = 1 / m};
  return {.near = penalty * m / (1 + penalty * m), .pull = 1 / (1 + penalty * m)};
}

// `mean_delta`: d̄; `factors`: S with this round's deltas in it.
template <Storage V>
Gaussian<V> admm_step(const AdmmWeights& weights, const Gaussian<V>& q,
                      const Gaussian<V>& mean_delta, const Gaussian<V>& factors) {
  using Scalar = typename V::Scalar;
  return product(power(product(q, mean_delta), Scalar(weights.near)),
                 power(factors, Scalar(weights.pull)));
}

}  // namespace fedep
