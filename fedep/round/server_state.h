// Everything the server carries from round to round. Two equal states and one recipe give equal
// runs; a checkpoint is this and the site store.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/gaussian.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/grid.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/server_average.h"
#include "fedep/round/task.h"

namespace fedep {

// What predictions' probabilities are raised to the power of 1/T with: at q's mean, averaged over
// draws from q, at the average, and over draws around that. 0: none was fitted.
struct Temperatures {
  std::int64_t round = 0;  // after which they were
  double point = 0, marginal = 0, average = 0, average_marginal = 0;

  // 0: none was fitted.
  double of(bool average_of_rounds, bool over_draws) const {
    if (average_of_rounds) return over_draws ? average_marginal : average;
    return over_draws ? marginal : point;
  }

  bool operator==(const Temperatures&) const = default;
};

// Of all coordinates, the one that moved furthest over a window of rounds.
struct FurthestMove {
  std::int64_t coordinate = -1;  // -1: not known
  double by = 0;                 // with its sign

  bool operator==(const FurthestMove&) const = default;
};

// The window of rounds over which q's movement is being measured, and what came of those before
// (convergence.h). Always in main memory.
struct ConvergenceState {
  static constexpr double kFar = std::numeric_limits<double>::infinity();

  std::int64_t begun = -1;      // rounds completed when the window began; -1: there is none
  HostVector<float> mean;       // of q then; empty if it was improper
  HostVector<float> deviation;  // of each coordinate
  std::int64_t lost = 0;        // of its rounds: those whose step, or part of it, was lost
  // How far q moved in the last two windows that were judged, one right after the other.
  double before = kFar, latest = kFar;
  // What moved furthest in the last of them.
  FurthestMove mean_at = {}, log_sd_at = {};
  // How far q had to go after them, by their moves and those before; nothing: not known.
  std::optional<double> left_before = {}, left_latest = {};

  bool operator==(const ConvergenceState&) const = default;
};

template <Storage V>
struct ServerStateOf {
  std::int64_t round = 0;   // rounds completed
  std::int64_t phase = -1;  // the phase that `global` belongs to, -1 before the first
  // Where chains start while q is improper: the weights a phase began with. Empty in phases whose q
  // is always proper.
  V initial;
  Gaussian<V> prior;   // q_0, a factor of its own that nobody updates
  Gaussian<V> global;  // q
  // S of ADMM (algorithm/admm_step.h): the prior times all factors, beside q. Empty in phases of
  // others, whose q is that.
  Gaussian<V> factors = {};
  OptimizerStateOf<V> optimizer;
  UnvisitedFactorOf<V> unvisited;
  // Where factors follow the server's steps: what each of the phase's so far was multiplied by, a
  // cooldown's or schedule's part, an outer δ and what the guard kept.
  std::vector<double> step_scales;
  GridState grid;
  ServerAverageOf<V> average;  // of the phase's rounds so far
  Temperatures temperatures;   // fitted last
  ConvergenceState convergence = {};

  bool operator==(const ServerStateOf&) const = default;
};
using ServerState = ServerStateOf<HostVector<float>>;

// Where chains start and predictions are made: eta / lambda, as the reference has it for negative
// precisions too; the initial weights in coordinates, or directions, that q says nothing about.
HostVector<float> point_estimate(const ServerState& state);

// What a round must know of q before it begins. Other storages bring their own begin_round().
template <Storage V>
struct RoundStartOf {
  V mean;                 // point_estimate()
  Magnitudes magnitudes;  // of q, if they were asked for
};
RoundStartOf<HostVector<float>> begin_round(const ServerState& state, bool with_magnitudes);

// The prior of one coordinate, in place of server.prior.
struct CoordinatePrior {
  std::size_t coordinate = 0;
  double mean = 0;
  double precision = 1;

  bool operator==(const CoordinatePrior&) const = default;
};

// A server that has not played yet. Of priors for one coordinate the last counts.
ServerState initial_server_state(const ServerSettings& settings, HostVector<float> initial,
                                 std::span<const CoordinatePrior> priors = {});

// Hand-over to a phase. The mean, or the average where the phase asks for it, is carried; everything else is made anew:
//
//   FedAvg, FedPA       q = (mean, lambda 1)
//   EP, carry_mean      Λ_k = α N_k,  q = q_0 Π_k q_k with the carried mean:
//                       Λ = Λ_0 + α N,  η_k = (N_k / N)(Λ mean - η_0)
//   EP, flat            q_k = 1, q = q_0
//
// The prior times all factors is q then, in ADMM too; FedDyn's clients begin with nothing.
//
// The optimizer's state is fresh, or carried: then eta's slots serve eta and lambda both.
ServerState begin_phase(ServerState state, const Phase& phase, std::int64_t index,
                        const Population& population);

}  // namespace fedep
