// The paper's toy experiment (Guo+23 Sec. 3.1, Table 4, Fig. 1 and Fig. 4 left): how far from the
// mean of the product of two Gaussian clients do FedAvg, FedPA and expectation propagation end?
//
//   const ToyResult result = run_toy_experiment({.trials = 200, .steps = 100, .seed = 1});
//   result.fed_ep.mean;          // average distance after the last step
//   result.fed_ep.by_round[9];   // and after the tenth
//
// EP here is parallel (all clients work from the same global), starts flat and infers exactly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "fedep/data/made_up/toy.h"
#include "fedep/inference/exact.h"
#include "fedep/message/gaussian.h"

namespace fedep {

// The global message and the factors whose product it is.
template <class T>
struct EpState {
  Gaussian<HostVector<T>> global;
  std::vector<Gaussian<HostVector<T>>> factors;  // one a client

  bool operator==(const EpState&) const = default;
};

template <class T>
EpState<T> flat_ep_state(std::size_t clients, std::size_t dimension, Projection projection) {
  const auto flat = flat_like(HostVector<T>(dimension), family_of(projection));
  return {flat, std::vector<Gaussian<HostVector<T>>>(clients, flat)};
}

// One round in which every client takes part (Guo+23 Alg. 3 and 4): each moves its factor by the
// damped delta (projected tilted / global)^damping, which undamped makes it projected tilted /
// cavity. The global is the product of the new factors: multiplying them again, rather than adding
// deltas to the global, keeps rounding errors from piling up over rounds.
template <class T, int D>
EpState<T> parallel_ep_step(const std::vector<DenseGaussian<T, D>>& clients,
                            const EpState<T>& state, Projection projection, T damping = T(1)) {
  check_same_size("parallel_ep_step", "factors", clients.size(), state.factors.size());
  EpState<T> next{flat_like(state.global.eta(), state.global.family()), {}};
  next.factors.reserve(clients.size());
  for (std::size_t k = 0; k < clients.size(); ++k) {
    const auto cavity = quotient(state.global, state.factors[k]);
    const auto projected = project(exact_tilted(cavity, clients[k]), cavity, projection);
    next.factors.push_back(
        damping == T(1)
            ? quotient(projected, cavity)
            : product(state.factors[k], power(quotient(projected, state.global), damping)));
    next.global = product(next.global, next.factors.back());
  }
  return next;
}

struct ToySettings {
  int trials = 200;
  int steps = 100;
  std::uint64_t seed = 1;
  bool float32 = false;  // all arithmetic after the draw of the clients in float32, as the paper's
  ToyPrior prior = paper_toy_prior();  // of two dimensions
};

// Distances over trials.
struct ToyDistance {
  double mean = 0;
  double std = 0;  // divisor: the number of trials
  double median = 0;
  std::vector<double>
      by_round;  // mean over trials after round 1, 2, ...; constant for a one-shot method
};

struct ToyResult {
  ToyDistance fed_avg;          // average of the clients' means
  ToyDistance fed_pa;           // product of the projected clients: EP's first step
  ToyDistance fed_ep;           // diagonal projection
  ToyDistance fed_ep_identity;  // scaled-identity projection; its first step is FedAvg
};

ToyResult run_toy_experiment(const ToySettings& settings);

// What Fig. 1 shows: two fixed clients and the three estimates of their product's mean.
struct ToyIllustration {
  std::array<ToyClient, 2> clients;
  Eigen::Vector2d exact;
  Eigen::Vector2d fed_avg;
  Eigen::Vector2d fed_pa;
  std::vector<Eigen::Vector2d> path;  // EP's mean after steps 1, 2, ...; the first is FedPA's
};

ToyIllustration illustrate_toy(int steps = 10);

}  // namespace fedep
