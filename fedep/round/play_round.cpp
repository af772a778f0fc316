#include "fedep/round/play_round.h"

#include <algorithm>
#include <cmath>

#include "fedep/algorithm/damping.h"
#include "fedep/message/check.h"
#include "fedep/optim/guard.h"
#include "fedep/random/stream.h"
#include "fedep/round/aggregate.h"
#include "fedep/round/round_parts.h"

namespace fedep {

std::vector<std::size_t> sample_clients(std::uint64_t seed, std::int64_t round,
                                        std::size_t population, std::size_t asked) {
  if (asked > population) {
    fail("sample_clients", "clients_per_round", fmt::format("at most {}", population),
         fmt::format("{}", asked));
  }
  Stream stream({.seed = seed, .purpose = Purpose::sample_clients, .round = std::uint32_t(round)});
  return sample_without_replacement(stream, population, asked);
}

RoundNumbers play_round(ServerState& state, const Phase& phase, std::uint64_t seed,
                        const Population& population, Executor& executor) {
  const std::vector<std::size_t> clients =
      sample_clients(seed, state.round, population.size(), phase.clients_per_round);
  const std::vector<ClientTask> tasks = make_tasks(clients, phase, population);
  const double delta =
      damping(phase.damping, clients.size(), std::size_t(state.round - phase.first_round));
  const HostVector<float> start = point_estimate(state);
  const RoundTask round{
      .seed = seed,
      .round = state.round,
      .phase = phase,
      .prior = state.prior,
      .global = state.global,
      .mean = start,
      .unvisited = state.unvisited,
      .damping = delta,
      .grid = choose_grid(state.grid, grid_choice(phase, tasks, delta), state.global)};

  Aggregate sum(round.grid, state.global.size(), state.global.family());
  std::vector<Report> reports;  // without their deltas
  executor.play(round, tasks, [&](Report report) {
    if (report.outcome == Outcome::delta) sum.add(report.delta);
    report.delta = {};
    reports.push_back(std::move(report));
  });
  // Losses and weights are floats: summed in client order, not as they arrive.
  std::sort(reports.begin(), reports.end(),
            [](const Report& a, const Report& b) { return a.client < b.client; });
  const std::size_t elements = state.global.size() + state.global.lambda_span().size();
  Tally answers = tally(reports, clients.size(), elements, round.grid.bits);
  RoundNumbers& numbers = answers.numbers;

  Message total = sum.total();
  state.grid = next_grid_state(state.grid, total, answers.numbers.too_large(), phase.grid_bits);
  Message next = state.global;
  double renormalised = 1;
  if (numbers.answered > 0) {
    renormalised = renormalisation(phase, answers);
    if (renormalised != 1) total = power(total, float(renormalised));
    const bool may_skip =
        phase.guard.mode == GuardMode::skip || phase.guard.mode == GuardMode::back_off;
    const OptimizerState before = may_skip ? state.optimizer : OptimizerState{};
    advance(phase.server_optimizer, state.optimizer, next, total,
            optimizer_scale(phase, state.round, delta));
    if (!phase.algorithm->point_estimate) {
      const GuardOutcome outcome = guard(phase.guard, state.global, next);
      numbers.improper_global = outcome.improper;
      numbers.step_scale = outcome.scale;
      if (outcome.skipped) {  // as if nobody had answered, here and at the clients
        state.optimizer = before;
        answers.taken.clear();
      }
    }
  }
  executor.settle(round, answers.taken, numbers.step_scale * renormalised);
  state.global = std::move(next);
  ++state.round;
  return numbers;
}

}  // namespace fedep
