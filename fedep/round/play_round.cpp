#include "fedep/round/play_round.h"

#include <algorithm>
#include <cmath>

#include "fedep/algorithm/damping.h"
#include "fedep/algorithm/fed_sep.h"
#include "fedep/message/check.h"
#include "fedep/optim/guard.h"
#include "fedep/random/stream.h"
#include "fedep/round/aggregate.h"

namespace fedep {
namespace {

std::vector<ClientTask> make_tasks(const std::vector<std::size_t>& clients, const Phase& phase,
                                   const Population& population) {
  double examples_asked = 0;
  for (const std::size_t client : clients) examples_asked += double(population[client].examples);
  std::vector<ClientTask> tasks;
  for (const std::size_t client : clients) {
    const double examples = double(population[client].examples);
    ClientTask task{.client = client};
    if (phase.weight == WeightRule::examples) {
      task.weight = examples_asked > 0 ? examples / examples_asked : 0;
    }
    if (phase.cavity == CavityKind::share) {
      task.share =
          share_of(phase.share, examples, double(population.examples()), double(population.size()));
    }
    tasks.push_back(task);
  }
  return tasks;
}

Grid grid_for(const ServerState& state, const Phase& phase, const std::vector<ClientTask>& tasks,
              double damping) {
  double weight = 0;
  for (const ClientTask& task : tasks) weight = std::max(weight, task.weight);
  const double scale = weight * (phase.damping.outside ? 1.0 : damping);
  return choose_grid(state.grid,
                     {.clip = phase.clip,
                      .scale = scale > 0 ? scale : 1.0,
                      .asked = tasks.size(),
                      .bits = phase.grid_bits},
                     state.global);
}

void count(const Report& report, RoundNumbers& numbers) {
  switch (report.outcome) {
    case Outcome::delta:
      ++numbers.answered;
      break;
    case Outcome::outside_grid:
      ++numbers.outside_grid;
      break;
    case Outcome::skipped:
      ++numbers.skipped;
      break;
    case Outcome::failed:
      return;
  }
  numbers.steps += report.numbers.steps;
  numbers.loss_sum += report.numbers.loss_sum;
  numbers.clipped += report.numbers.clipped;
  numbers.improper_cavities += report.numbers.improper_cavity > 0;
}

}  // namespace

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
  const RoundTask round{.seed = seed,
                        .round = state.round,
                        .phase = phase,
                        .prior = state.prior,
                        .global = state.global,
                        .mean = start,
                        .unvisited = state.unvisited,
                        .damping = delta,
                        .grid = grid_for(state, phase, tasks, delta)};

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
  RoundNumbers numbers{.asked = clients.size()};
  std::vector<std::size_t> taken;
  double weight_taken = 0;
  std::size_t too_large = 0;
  for (const Report& report : reports) {
    count(report, numbers);
    // A coarser grid makes room for a large delta, but for none with NaN or infinity.
    too_large +=
        report.outcome == Outcome::outside_grid && std::isfinite(report.numbers.delta_norm);
    if (report.outcome != Outcome::delta) continue;
    taken.push_back(report.client);
    weight_taken += report.weight;
  }
  numbers.dropped = numbers.asked - numbers.answered - numbers.outside_grid - numbers.skipped;
  const std::uint64_t elements = state.global.size() + state.global.lambda_span().size();
  numbers.bytes_up = numbers.answered * elements * std::uint64_t(round.grid.bits / 8);
  numbers.bytes_down = numbers.asked * elements * sizeof(float);

  Message total = sum.total();
  state.grid = next_grid_state(state.grid, total, too_large, phase.grid_bits);
  Message next = state.global;
  double renormalised = 1;
  if (numbers.answered > 0) {
    // Weights were shares of the examples asked for; make them shares of those that came.
    if (phase.weight == WeightRule::examples && numbers.answered < numbers.asked &&
        weight_taken > 0) {
      renormalised = 1 / weight_taken;
      total = power(total, float(renormalised));
    }
    const bool may_skip =
        phase.guard.mode == GuardMode::skip || phase.guard.mode == GuardMode::back_off;
    const OptimizerState before = may_skip ? state.optimizer : OptimizerState{};
    advance(phase.server_optimizer, state.optimizer, next, total,
            phase.damping.outside ? delta : 1.0);
    if (!phase.algorithm->point_estimate) {
      const GuardOutcome outcome = guard(phase.guard, state.global, next);
      numbers.improper_global = outcome.improper;
      numbers.step_scale = outcome.scale;
      if (outcome.skipped) {  // as if nobody had answered, here and at the clients
        state.optimizer = before;
        taken.clear();
      }
    }
  }
  executor.settle(round, taken, numbers.step_scale * renormalised);
  state.global = std::move(next);
  ++state.round;
  return numbers;
}

}  // namespace fedep
