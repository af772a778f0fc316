// FedEP (Guo+23 Alg. 3 and 4): clients remember their factors q_k; the cavity is q / q_k, the delta
//
//   Δq_k = q̂_{\k} / q,   q̂_{\k} ≈ p_k × cavity   the approximate tilted distribution,
//
// and damped steps move factor and global alike: q_k ← q_k Δq_k^δ,  q ← q Π_k Δq_k^δ. The delta has
// the same form for every cavity: whatever part of q was taken out for the client to replace, the
// client's new part divided by the old one is q̂_{\k} / q.
#pragma once

#include "fedep/message/gaussian.h"

namespace fedep {

template <Storage V>
Gaussian<V> fed_ep_delta(const Gaussian<V>& tilted, const Gaussian<V>& global) {
  return quotient(tilted, global);
}

}  // namespace fedep
