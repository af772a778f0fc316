// The cavity q_{-k}: what a client is told the others believe (Guo+23 Alg. 4, line 2).
//
//   own_factor   q / q_k                   EP
//   share        q / (q / q_0)^share       stochastic EP: a copy of the average factor stands for q_k
//   flat         1                         FedPA: the client hears nothing
//   whole        q                         assumed-density filtering: nothing is taken out
//
// Point estimates (lambda = 1, eta = theta) have one around q's mean, of precision mu N_k:
//
//   proximal     N(theta, 1/(mu N_k))           FedProx
//   dual         N(theta - t_k, 1/(mu N_k))     FedDyn, t_k what the client remembers
#pragma once

#include "fedep/algorithm/fed_sep.h"
#include "fedep/algorithm/settings.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// `factor` is read by own_factor only, `prior` (q_0) and `share` by share only.
template <Storage V>
Gaussian<V> cavity(CavityKind kind, const Gaussian<V>& global, const Gaussian<V>& prior,
                   const Gaussian<V>& factor, double share) {
  switch (kind) {
    case CavityKind::own_factor:
      return quotient(global, factor);
    case CavityKind::share:
      return quotient(global, average_factor(global, prior, share));
    case CavityKind::flat:
      return flat_like(global.eta(), global.family());
    case CavityKind::whole:
    case CavityKind::proximal:  // proximal_cavity()
    case CavityKind::dual:
      break;
  }
  return global;
}

// `center` is q's mean, or that less what the client remembers.
template <Storage V>
Gaussian<V> proximal_cavity(const V& center, double mu, double examples) {
  return from_mean(center, typename V::Scalar(mu * examples));
}

}  // namespace fedep
