// How much of q's precision is still what the clients' factors began a phase with, α N_k each
// (factors = carry_mean): no data have spoken for it.
//
//   StartLeft start(phase, population, recipe.seed);
//   for (const PlayedRound& round : rounds) start.follow(round);
//   start_shares(q, start.precision());       // of every weight's precision
//
// A visit moves a factor by γ (what was inferred - factor): of what it began with (1 - γ) stays,
// (1 - γ)^visits after several, all of it where nobody visits. Steps of sgd are linear, with momentum
// too, so what is left follows a round's own recursion, one number for all weights, with nothing
// inferred. In examples, of which each has the precision α:
//
//   own factor   d_k = -γ_k a_k,            a_k = N_k at first    left in client k's factor
//   share        d_k = -γ_k share_k A,      A = N at first        left in q
//   flat         d_k = -γ_k A
//   whole        d_k = 0                                          nothing is ever taken out
//
//   v ← m v + Σ d_k,   A ← A + lr·scale·v,      and a_k in the same way by d_k alone,
//
// at client k's visits or, where factors follow the server's clock, in every round.
#pragma once

#include <cstdint>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"

namespace fedep {

// What a run's log says of a round.
struct PlayedRound {
  std::int64_t round = 0;
  bool whole = true;      // everybody who was asked answered, and no answer was clipped
  double step_scale = 1;  // the part of the server's step that the guard let through
};

// Whether factors begin with a precision that is a setting.
bool begins_with_alpha(const Phase& phase);

class StartLeft {
 public:
  // What is referred to must outlive this.
  StartLeft(const Phase& phase, const Population& population, std::uint64_t seed);

  // The phase's next round.
  void follow(const PlayedRound& round);

  // Part of every weight's precision in q. Who is missing in a round that is not whole is not known,
  // so such rounds take nothing away and this is the most that it can be. NaN: not to be known, with
  // optimizers other than sgd, and after such a round where there is momentum.
  double precision() const;
  const Phase& phase() const { return *phase_; }

 private:
  struct Left {
    double examples = 0;
    double velocity = 0;
    void step(double delta, const OptimizerSettings& optimizer, double scale);
  };

  const Phase* phase_;
  const Population* population_;
  std::uint64_t seed_;
  bool known_;
  Left in_q_;
  std::vector<Left> in_factors_;  // of stateful phases
};

// The part of each weight's precision that goes with `start` on Λ's diagonal. In the full family of its
// marginal precision, 1/(Λ⁻¹)_ii: 1 - (Λ⁻¹)_ii / ((Λ - start I)⁻¹)_ii, so that without that part a
// deviation is 1/√(1 - share) times as large, as in the other families. 1 where the rest would be
// improper. One number for an isotropic q.
std::vector<double> start_shares(const Message& q, double start);

}  // namespace fedep
