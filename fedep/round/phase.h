// One phase of a schedule with every choice made: what its rounds have in common. Built from a
// recipe by plan_phases; the round loop, executors and clients read it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/algorithm/algorithm.h"
#include "fedep/algorithm/settings.h"
#include "fedep/config/recipe.h"
#include "fedep/message/gaussian.h"
#include "fedep/optim/settings.h"

namespace fedep {

struct Phase {
  const Algorithm* algorithm = nullptr;
  std::int64_t first_round = 0;  // of the run; rounds count from 0
  std::int64_t rounds = 0;
  Family family = Family::isotropic;
  CavityKind cavity = CavityKind::flat;
  double mu = 0;           // precision per example of a proximal or dual cavity
  double penalty = 1;      // ρ: visits take 1/ρ of likelihood and factor
  double temperature = 1;  // T: likelihoods count 1/T
  ShareRule share = ShareRule::examples;
  WeightRule weight = WeightRule::equal;
  DampingSettings damping = {};
  double clip = 0;  // joint norm of a delta, 0 = none
  GuardSettings guard = {};
  DeltaSettings delta = {};
  FactorStart factors = FactorStart::carry_mean;
  double alpha = 0;  // precision per example of carry_mean's factors
  FactorClock clock = FactorClock::visit;
  bool carries_optimizer = false;
  OptimizerSettings server_optimizer = {};
  OptimizerSettings factor_optimizer = {};
  std::optional<CooldownSettings> cooldown = {};
  ScheduleSettings schedule = {};
  double client_rate = 1;  // of the round: what a client's rate is multiplied by
  std::optional<AverageSettings> average = {};
  HandOver hand_over = HandOver::mean;
  std::size_t clients_per_round = 1;
  int grid_bits = 64;
  InferenceSettings inference = {};
  // Factors of sparse models are asked for where a method has one precision for all weights: beyond
  // its client's own weights a factor is shares of q's means (mean_shelf.h).
  bool shares_means = false;

  // Clients keep a factor of their own between visits.
  bool stateful() const { return remembers(cavity); }
  // What a visit raises its client's likelihood to.
  double likelihood_power() const { return 1 / (temperature * penalty); }
  // Momentum moves factors in every round in which the server stepped (factor_clock.h).
  bool follows_rounds() const {
    return stateful() && clock == FactorClock::round && factor_optimizer.momentum > 0;
  }
  std::int64_t end_round() const { return first_round + rounds; }
};

// What the optimizers' steps of a round, on q and on factors, are multiplied by: δ where it stands
// outside of them, and the part that a cooldown or the server's schedule leaves.
double optimizer_scale(const Phase& phase, std::int64_t round, double damping);

// The phase with what its schedules make of clip, alpha and the client's rate in this round; nothing
// where no schedule touches them.
std::optional<Phase> phase_in_round(const Phase& phase, std::int64_t round);

// Why a phase of a recipe cannot have messages with full precision matrices, with the key to change;
// empty if it can. What depends on its data or its inference method is not looked at.
std::string full_family_problem(const Recipe& recipe, std::size_t phase);

// `family_of` names the family that an inference method's tilted distributions belong to. It is the
// phase's, unless the phase asks for `full`.
std::vector<Phase> plan_phases(const Recipe& recipe,
                               const std::function<Family(std::string_view)>& family_of);

}  // namespace fedep
