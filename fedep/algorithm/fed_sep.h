// FedSEP (Guo+23 Sec. 2.2.4): EP for clients without memory. The global approximation is the prior
// times copies of one average factor, q = q_0 q̄^…; a client takes out its share of q/q_0 in place
// of a factor of its own,
//
//   q̄_k = (q / q_0)^share,   share = N_k / N (the reference) or 1 / #clients (the paper),
//
// and returns the delta of fed_ep.h. Nothing is stored between visits.
#pragma once

#include "fedep/algorithm/settings.h"
#include "fedep/message/gaussian.h"

namespace fedep {

inline double share_of(ShareRule rule, double examples, double all_examples, double all_clients) {
  return rule == ShareRule::examples ? examples / all_examples : 1.0 / all_clients;
}

template <Storage V>
Gaussian<V> average_factor(const Gaussian<V>& global, const Gaussian<V>& prior, double share) {
  check_in("average_factor", "share", share, 0, 1);
  return power(quotient(global, prior), typename V::Scalar(share));
}

}  // namespace fedep
