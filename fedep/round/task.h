// What passes between the server and its clients in one round: a task for everyone asked, a report
// back.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fedep/message/gaussian.h"
#include "fedep/round/grid.h"
#include "fedep/round/phase.h"

namespace fedep {

// How the factor of a client that was never visited looks: `per_example` to the power of its
// examples.
template <Storage V>
struct UnvisitedFactorOf {
  Gaussian<V> per_example;  // without elements: flat

  bool operator==(const UnvisitedFactorOf&) const = default;
};
using UnvisitedFactor = UnvisitedFactorOf<HostVector<float>>;

// What became of a step that the server's optimizer would have made of a round's answers.
struct StepPart {
  double renormalised =
      1;            // what their sum was multiplied by: weights shared out among those heard
  double kept = 1;  // of the step, below 1 after a back-off

  double all() const { return kept * renormalised; }
};

// The same for all clients of a round. References stay valid until the round is settled.
template <Storage V>
struct RoundTaskOf {
  std::uint64_t seed;
  std::int64_t round;
  const Phase& phase;
  const Gaussian<V>& prior;   // q_0
  const Gaussian<V>& global;  // q
  const V& mean;  // where chains start: q's mean, or the initial weights while q is improper
  const UnvisitedFactorOf<V>& unvisited;
  double damping;  // δ, for clients and server alike
  Grid grid;
  // Of the phase's steps so far, where factors follow them (ServerState::step_scales).
  std::span<const double> step_scales = {};
};
using RoundTask = RoundTaskOf<HostVector<float>>;

struct ClientTask {
  std::size_t client = 0;  // index in the population
  double weight = 1;       // of its delta, before damping
  double share = 0;        // of q/q_0, for stochastic EP
};

enum class Outcome {
  delta,         // report.delta is to be added
  outside_grid,  // the delta did not fit the grid; nothing to add
  skipped,       // the guard left this client out
  failed,        // lost or broken; in simulation this ends the run instead
};

// Numbers about a visit that end up in the run log.
struct VisitNumbers {
  std::size_t examples = 0;
  std::size_t steps = 0;  // minibatch steps
  double loss_sum = 0;    // over steps: mean training loss = loss_sum / steps
  double delta_norm = 0;  // joint norm before clipping
  bool clipped = false;
  bool rounded_away =
      false;  // the grid that follows from the clip norm is too coarse for the delta
  std::size_t improper_cavity = 0;  // coordinates
};

struct Report {
  std::size_t client = 0;
  Outcome outcome = Outcome::failed;
  GridDelta delta;
  double weight = 1;  // as asked
  VisitNumbers numbers;
  std::string error;  // of outcome failed
};

}  // namespace fedep
