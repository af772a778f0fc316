// One round (Guo+23 Alg. 1 and 3): sample clients, let the executor play their part, add what comes
// back, step the optimizer, guard the result.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fedep/algorithm/admm_step.h"
#include "fedep/algorithm/damping.h"
#include "fedep/optim/guard.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/executor.h"
#include "fedep/round/population.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/server_state.h"

namespace fedep {

// Where q goes by the deltas' sum, which is γ ρ times what `answered` clients said, and S after it.
template <Storage V>
Gaussian<V> admm_stepped(const ServerStateOf<V>& state, const Phase& phase,
                         const Gaussian<V>& total, std::size_t answered, std::size_t clients,
                         double damping, double scale) {
  using Scalar = typename V::Scalar;
  const Gaussian<V> mean_delta = power(total, Scalar(1 / (damping * double(answered))));
  const AdmmWeights weights = admm_weights(phase.algorithm->point_estimate, phase.penalty, clients);
  const Gaussian<V> whole =
      admm_step(weights, state.global, mean_delta, product(state.factors, total));
  if (scale == 1) return whole;
  return product(state.global, power(quotient(whole, state.global), Scalar(scale)));
}

// Plays round state.round and moves the state on. If nothing was added q stays where it is. The same
// for every storage of messages: what others bring are begin_round(), magnitudes(), advance() and
// what optim/guard.h asks for; with averages point_estimate() and average_in().
template <Storage V>
RoundNumbers play_round(ServerStateOf<V>& state, const Phase& planned, std::uint64_t seed,
                        const Population& population, ExecutorOf<V>& executor) {
  const std::optional<Phase> changed = phase_in_round(planned, state.round);
  const Phase& phase = changed ? *changed : planned;
  const std::vector<ClientTask> tasks =
      make_tasks(sample_clients(seed, state.round, population.size(), phase.clients_per_round),
                 phase, population);
  const double delta =
      damping(phase.damping, tasks.size(), std::size_t(state.round - phase.first_round));
  const RoundStartOf<V> start = begin_round(state, /*with_magnitudes=*/!(phase.clip > 0));
  const RoundTaskOf<V> round{
      .seed = seed,
      .round = state.round,
      .phase = phase,
      .prior = state.prior,
      .global = state.global,
      .mean = start.mean,
      .unvisited = state.unvisited,
      .damping = delta,
      .grid = choose_grid(state.grid, grid_choice(phase, tasks, delta), start.magnitudes),
      .step_scales = state.step_scales};

  AnswersOf<V> answers = executor.play(round, tasks);
  Tally counted =
      tally(std::move(answers.reports), tasks.size(), numbers_of(state.global), round.grid.bits);
  RoundNumbers& numbers = counted.numbers;
  state.grid =
      next_grid_state(state.grid, magnitudes(answers.total), numbers.too_large(), phase.grid_bits);
  Gaussian<V> next = state.global;
  double renormalised = 1;
  const double scale = optimizer_scale(phase, state.round, delta);
  bool stepped = numbers.answered > 0;
  if (stepped) {
    renormalised = renormalisation(phase, counted);
    if (renormalised != 1) answers.total = power(answers.total, float(renormalised));
    const bool may_skip =
        phase.guard.mode == GuardMode::skip || phase.guard.mode == GuardMode::back_off;
    OptimizerStateOf<V> before = may_skip ? state.optimizer : OptimizerStateOf<V>{};
    if (phase.algorithm->step == StepRule::admm) {
      next = admm_stepped(state, phase, answers.total, numbers.answered, population.size(), delta,
                          scale);
    } else {
      advance(phase.server_optimizer, state.optimizer, next, answers.total, scale);
    }
    if (!phase.algorithm->point_estimate) {
      const GuardOutcome outcome = guard(phase.guard, state.global, next);
      numbers.improper_global = outcome.improper;
      numbers.step_scale = outcome.scale;
      if (outcome.skipped) {  // as if nobody had answered, here and at the clients
        state.optimizer = std::move(before);
        counted.taken.clear();
        stepped = false;
      }
    }
  }
  if constexpr (InMainMemory<V>) {
    if (next.full()) numbers.condition = condition_number(next.lambda_packed(), next.size());
  }
  executor.settle(round, counted.taken, {.renormalised = renormalised, .kept = numbers.step_scale});
  if (stepped && phase.follows_rounds()) state.step_scales.push_back(scale * numbers.step_scale);
  if (stepped && phase.algorithm->step == StepRule::admm) {
    const double kept = scale * numbers.step_scale;
    if (kept != 1) answers.total = power(answers.total, typename V::Scalar(kept));
    state.factors = product(state.factors, answers.total);
  }
  state.global = std::move(next);
  if (counts_in_average(phase, state.round)) {
    follow_average(state.average, phase, state.round, point_estimate(state), state.global);
  }
  ++state.round;
  return numbers;
}

}  // namespace fedep
