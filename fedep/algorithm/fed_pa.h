// FedPA, federated posterior averaging (Al-Shedivat+21): the delta is the local posterior's natural
// gradient,
//
//   delta = Σ̂⁻¹ (θ̄ - θ_init),   Σ̂ = ρ_l I + (1 - ρ_l) S,   ρ_l = 1 / (1 + (l-1) ρ),
//
// with θ̄ and S the mean and unbiased covariance of l samples. Sherman-Morrison updates give it in
// O(l² d) time and O(l d) memory. Messages have lambda = 1 and eta = theta, as in FedAvg.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// Needs at least one sample; with one, the delta is sample - θ_init.
template <Storage V>
V posterior_delta(std::span<const V> samples, const V& initial, double rho) {
  using Scalar = typename V::Scalar;
  check_positive("posterior_delta", "number of samples", double(samples.size()));
  check_not_negative("posterior_delta", "rho", rho);
  // Kept from step t: v_t, which spans the covariance's inverse, and u_t·v_t.
  std::vector<V> v_of;
  std::vector<double> uv_of;
  V average = samples[0];
  V descent = initial - samples[0];
  for (std::size_t t = 2; t <= samples.size(); ++t) {
    const V u = samples[t - 1] - average;
    V v = u;
    for (std::size_t k = 2; k < t; ++k) {
      const V& v_k = v_of[k - 2];
      const double gamma_k = rho * double(k - 1) / double(k);
      v = v - Scalar(gamma_k * dot(v_k, u) / (1 + gamma_k * uv_of[k - 2])) * v_k;
    }
    const double a = dot(u, v);
    const double b = dot(u, descent);
    const double gamma = rho * double(t - 1) / double(t);
    const double c = gamma * (double(t) * b - a) / (1 + gamma * a);
    descent = descent - Scalar((1 + c) / double(t)) * v;
    average = average + Scalar(1 / double(t)) * u;
    v_of.push_back(v);
    uv_of.push_back(a);
  }
  return Scalar(-(1 + double(samples.size() - 1) * rho)) * descent;
}

template <Storage V>
Gaussian<V> fed_pa_delta(std::span<const V> samples, double rho, const Gaussian<V>& global) {
  return {posterior_delta(samples, mean(global), rho), typename V::Scalar(0)};
}

}  // namespace fedep
