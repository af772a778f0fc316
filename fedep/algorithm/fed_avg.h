// FedAvg: the server moves towards the clients' last iterates. As messages: lambda = 1 for ever,
// eta = theta.
#pragma once

#include "fedep/message/gaussian.h"

namespace fedep {

// (theta_last - theta, 0).
template <Storage V>
Gaussian<V> fed_avg_delta(const V& last, const V& start) {
  return {last - start, typename V::Scalar(0)};
}

}  // namespace fedep
