#include "fedep/round/round_parts.h"

#include <algorithm>
#include <cmath>

#include "fedep/algorithm/fed_sep.h"
#include "fedep/message/check.h"
#include "fedep/random/stream.h"

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

GridChoice grid_choice(const Phase& phase, const std::vector<ClientTask>& tasks, double damping) {
  double weight = 0;
  for (const ClientTask& task : tasks) weight = std::max(weight, task.weight);
  const double scale = weight * (phase.damping.outside ? 1.0 : damping);
  return {.clip = phase.clip,
          .scale = scale > 0 ? scale : 1.0,
          .asked = tasks.size(),
          .bits = phase.grid_bits};
}

namespace {

void count(const Report& report, RoundNumbers& numbers) {
  switch (report.outcome) {
    case Outcome::delta:
      ++numbers.answered;
      break;
    case Outcome::outside_grid:
      ++numbers.outside_grid;
      numbers.diverged += !std::isfinite(report.numbers.delta_norm);
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
  numbers.rounded_away += report.numbers.rounded_away;
  numbers.improper_cavities += report.numbers.improper_cavity > 0;
}

}  // namespace

Tally tally(std::vector<Report> reports, std::size_t asked, std::size_t elements, int bits) {
  std::ranges::sort(reports, {}, &Report::client);
  Tally answers;
  RoundNumbers& numbers = answers.numbers;
  numbers.asked = asked;
  for (const Report& report : reports) {
    count(report, numbers);
    if (report.outcome != Outcome::delta) continue;
    answers.taken.push_back(report.client);
    answers.weight_taken += report.weight;
  }
  numbers.dropped = numbers.asked - numbers.answered - numbers.outside_grid - numbers.skipped;
  numbers.bytes_up = numbers.answered * elements * std::uint64_t(bits / 8);
  numbers.bytes_down = numbers.asked * elements * sizeof(float);
  return answers;
}

double renormalisation(const Phase& phase, const Tally& tally) {
  const bool some_missing = tally.numbers.answered < tally.numbers.asked;
  const bool shares = phase.weight == WeightRule::examples;
  return shares && some_missing && tally.weight_taken > 0 ? 1 / tally.weight_taken : 1.0;
}

}  // namespace fedep
