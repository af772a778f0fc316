// FedPA, federated posterior averaging (Al-Shedivat+21): the delta is the local posterior's natural
// gradient,
//
//   delta = Σ̂⁻¹ (θ̄ - θ_init),   Σ̂ = ρ_l I + (1 - ρ_l) S,   ρ_l = 1 / (1 + (l-1) ρ),
//
// with θ̄ and S the mean and unbiased covariance of l samples θ_i. Let w = θ̄ - θ_init, and X the
// matrix of all θ_i - θ̄. Then Σ̂ = ρ_l (I + ρ X Xᵀ), so
//
//   delta = (w - X y) / ρ_l,   (I + ρ XᵀX) y = ρ Xᵀw.
//
// w and X are made of the l moves θ_1 - θ_init, θ_2 - θ_1, …, θ_l - θ_1 (all but one of them as
// short as samples are near one another, so nothing cancels), and delta is a weighted sum of them.
// The weights need no more than their l² scalar products: O(l² d) time, O(l d) memory, as with the
// paper's recursion. Messages have lambda = 1 and eta = theta, as in FedAvg.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// Weights of the moves in the delta, from their scalar products [l, l].
std::vector<double> posterior_weights(std::span<const double> products, double rho);

// The first sample's from where the chain started, the others' from the first.
template <Storage V>
V move_of(std::span<const V> samples, const V& initial, std::size_t i) {
  return samples[i] - (i == 0 ? initial : samples[0]);
}

// What a storage may have a faster way for: scalar products of all pairs of moves, and their
// weighted sum.
template <Storage V>
std::vector<double> products_of_moves(std::span<const V> samples, const V& initial) {
  const std::size_t l = samples.size();
  std::vector<V> moves;
  for (std::size_t i = 0; i < l; ++i) moves.push_back(move_of(samples, initial, i));
  std::vector<double> products(l * l);
  for (std::size_t i = 0; i < l; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      products[i * l + j] = products[j * l + i] = dot(moves[i], moves[j]);
    }
  }
  return products;
}
template <Storage V>
V sum_of_moves(std::span<const V> samples, const V& initial, std::span<const double> weights) {
  using Scalar = typename V::Scalar;
  V sum = Scalar(weights[0]) * move_of(samples, initial, 0);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    sum = sum + Scalar(weights[i]) * move_of(samples, initial, i);
  }
  return sum;
}

// Needs at least one sample; with one, the delta is sample - θ_init.
template <Storage V>
V posterior_delta(std::span<const V> samples, const V& initial, double rho) {
  check_positive("posterior_delta", "number of samples", double(samples.size()));
  check_not_negative("posterior_delta", "rho", rho);
  return sum_of_moves(samples, initial,
                      posterior_weights(products_of_moves(samples, initial), rho));
}

}  // namespace fedep
