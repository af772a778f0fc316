// (IVON) Improved variational online Newton (Shen+24), with a cavity for its prior: one chain for mean
// and precision, in place of SGD's. With Λ_p = Λ_cavity + wd N_k, rate lr and momentum β₁ of
// client.optimizer, β₂ = decay, S = samples, from q's mean and h_0 = N_k initial_scale on, step t:
//
//   Λ = h + Λ_p,   θ_i = m + ε_i / √Λ
//   g = average over i of the batch's mean gradient at θ_i,    f = N_k average of gradient (θ_i - m) Λ
//   ḡ ← β₁ ḡ + (1 - β₁) g
//   h ← β₂ h + (1 - β₂) f + ½ (1 - β₂)² (h - f)² / (h + Λ_p)
//   m ← m - lr ( N_k ḡ / (1 - β₁ᵗ) + Λ_p m - η_cavity ) / (h + Λ_p)
//
//   tilted: mean m, precision h + Λ_p
//
// f is the Hessian's diagonal on average (Stein), and the last term of h keeps h + Λ_p positive whatever
// f is: it becomes ½ (h + Λ_p)(1 + (1 - (1 - β₂)(h - f)/(h + Λ_p))²).
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/inference/cohort.h"
#include "fedep/message/check.h"

namespace fedep {

inline void check_ivon(const InferenceSettings& settings, int) {
  if (settings.samples > 127) {
    fail("phase.inference", "samples", "at most 127", fmt::format("{}", settings.samples));
  }
  if (!(settings.initial_scale > 0)) {
    fail("phase.inference", "initial_scale with ivon",
         "positive: its curvature an example, to begin with",
         fmt::format("{}", settings.initial_scale));
  }
}

namespace detail {

template <Storage V>
struct IvonState {
  V mean, h, prior, gradient;  // gradient: ḡ
};

template <Storage V>
void ivon_step(const InferenceSettings& settings, double examples, double rate, double momentum,
               int t, const V& eta, const V& g, const V& f, IvonState<V>& s) {
  using Scalar = typename V::Scalar;
  const double gain = 1 - settings.decay;
  const V gap = s.h - f;
  const V correction = gap * gap / (s.h + s.prior);
  s.h = Scalar(settings.decay) * s.h + Scalar(gain) * f + Scalar(gain * gain / 2) * correction;
  s.gradient = Scalar(momentum) * s.gradient + Scalar(1 - momentum) * g;
  const Scalar unbiased = Scalar(examples / (1 - std::pow(momentum, double(t + 1))));
  const V slope = unbiased * s.gradient + s.prior * s.mean - eta;
  s.mean = s.mean - Scalar(rate) * slope / (s.h + s.prior);
}

}  // namespace detail

template <Storage V>
std::vector<Gaussian<V>> ivon(Cohort<V>& cohort, const InferenceSettings& settings) {
  using Scalar = typename V::Scalar;
  const std::size_t rows = cohort.clients();
  const int epochs = cohort.epochs();
  std::vector<detail::IvonState<V>> states;
  int batches = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const Scalar n = Scalar(cohort.examples(row));
    const V start = cohort.iterate(row);
    states.push_back({.mean = start,
                      .h = constant_like(start, n * Scalar(settings.initial_scale)),
                      .prior = cohort.cavity(row).lambda_full() + Scalar(cohort.weight_decay()) * n,
                      .gradient = constant_like(start, Scalar(0))});
    batches = std::max(batches, cohort.fisher_batches(row, epochs));
  }
  for (int t = 0; t < batches; ++t) {
    std::vector<V> precision, root, g, f;
    for (const detail::IvonState<V>& s : states) {
      precision.push_back(s.h + s.prior);
      root.push_back(sqrt(precision.back()));
      g.push_back(constant_like(s.mean, Scalar(0)));
      f.push_back(g.back());
    }
    for (int draw = 0; draw < settings.samples; ++draw) {
      std::vector<V> theta;
      for (std::size_t row = 0; row < rows; ++row) {
        theta.push_back(cohort.draw_weights(row, t, draw, states[row].mean, root[row]));
      }
      const std::vector<V> gradients = cohort.gradients(theta, t, epochs, draw);
      for (std::size_t row = 0; row < rows; ++row) {
        g[row] = g[row] + gradients[row];
        f[row] = f[row] + gradients[row] * (theta[row] - states[row].mean) * precision[row];
      }
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const int own = cohort.fisher_batches(row, epochs);
      if (t >= own) continue;
      const double n = cohort.examples(row);
      detail::ivon_step(settings, n, cohort.step_rate(t, own), cohort.step_momentum(), t,
                        cohort.cavity(row).eta(), g[row] / Scalar(settings.samples),
                        Scalar(n) * (f[row] / Scalar(settings.samples)), states[row]);
    }
  }
  std::vector<Gaussian<V>> tilted;
  for (detail::IvonState<V>& s : states) tilted.push_back(from_mean(s.mean, s.h + s.prior));
  return tilted;
}

}  // namespace fedep
