// A run of clients of very different sizes, what is compared of it, and the comparison: for tests that
// hold ranks to the bits of one process.
//
//   const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
//   Played played = play_at(*place, *task, recipe);
//   played.sites = sites_here(*task, *store);
//   expect_same(played, expected);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/round/run.h"
#include "fedep/sim/sparse/sparse_factors.h"
#include "fedep/sim/task.h"

namespace fedep {

// Two phases, factors that move, an average, temperatures. `method`: of algorithms that infer.
inline Recipe uneven_recipe(std::string_view algorithm, std::string_view method, int grid_bits) {
  Recipe plan;
  plan.data = {.name = "synthetic", .clients = 9, .dimension = 5, .examples = 200};
  plan.data.calibration_fraction = 0.1;
  plan.client = {.epochs = 2, .batch = 5, .optimizer = {.lr = 0.02, .momentum = 0.9}};
  plan.server.clients_per_round = 5;
  plan.server.grid_bits = grid_bits;
  plan.server.optimizer = {.lr = 0.5, .momentum = 0.5};
  plan.server.prior = PriorSettings{.mean = 0, .precision = 1};
  plan.phases.push_back({.algorithm = "fed_avg", .rounds = 2});
  plan.phases.push_back({.algorithm = std::string(algorithm), .rounds = 6});
  plan.phases[1].inference = InferenceSettings{.name = std::string(method), .alpha = 0.02};
  if (method == "sample_moments") plan.phases[1].inference->shrinkage = 1e-3;
  plan.phases[1].average = AverageSettings{.rounds = 3};
  const Algorithm& row = find_algorithm(algorithm);
  if (row.point_estimate) {
    plan.phases[1].inference.reset();
    plan.phases[1].mu = 0.1;
  }
  if (row.plain_steps) {
    plan.server.optimizer = {};
    plan.phases[0].optimizer = OptimizerSettings{.lr = 0.5, .momentum = 0.5};
  }
  plan.evaluate.samples = 2;
  plan.evaluate.every = 3;
  plan.checkpoint.every = 2;
  return resolved(plan);
}

struct Played {
  RunResult result;
  std::vector<RoundReport> rounds;
  std::map<std::uint64_t, SiteState> sites;  // that this process has
  Temperatures temperatures;
};

// All but the sites.
inline Played play_at(Place& place, Task& task, const Recipe& recipe) {
  auto phases = plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  mark_shared_means(recipe, phases);
  Played played;
  const auto watch = [&](const RoundReport& report) { played.rounds.push_back(report); };
  played.result = play_run({recipe, phases, task.population(), task.layout(), place},
                           task.initial_weights(), {.watch = watch});
  played.temperatures = place.temperatures();
  return played;
}

inline std::map<std::uint64_t, SiteState> sites_here(const Task& task, const SiteStore& store) {
  std::map<std::uint64_t, SiteState> sites;
  for (std::size_t k = 0; k < task.population().size(); ++k) {
    const std::uint64_t key = task.population()[k].key;
    if (store.is_elsewhere(key)) continue;
    if (auto site = store.get(key)) sites[key] = std::move(*site);
  }
  return sites;
}

// All but the sites, of which each rank has its own, and the gap of factors, which not every place has.
inline void expect_same(const Played& played, const Played& expected) {
  EXPECT_EQ(played.result.state, expected.result.state);
  EXPECT_EQ(played.result.metrics, expected.result.metrics);
  EXPECT_EQ(played.temperatures, expected.temperatures);
  ASSERT_EQ(played.rounds.size(), expected.rounds.size());
  for (std::size_t i = 0; i < expected.rounds.size(); ++i) {
    const RoundNumbers &numbers = played.rounds[i].numbers, &wanted = expected.rounds[i].numbers;
    EXPECT_EQ(numbers.loss_sum, wanted.loss_sum);
    EXPECT_EQ(numbers.steps, wanted.steps);
    EXPECT_EQ(numbers.answered, wanted.answered);
    EXPECT_EQ(numbers.bytes_up, wanted.bytes_up);
    EXPECT_EQ(played.rounds[i].metrics, expected.rounds[i].metrics);
  }
}

}  // namespace fedep
