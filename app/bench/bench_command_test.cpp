#include "app/bench/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fedep/config/resolve.h"
#include "fedep/data/made_up/synthetic.h"

namespace fedep {
namespace {

// Two rounds of 50 steps in 0.2 s.
BenchRow made_up() {
  BenchRow row;
  row.times = {
      .gauge = {.device = "test", .copy_rate = 1e9, .product_rate = 1e9, .peak_memory = 3000000000},
      .clients = 5,
      .rounds = 2,
      .steps = 100,
      .training = 0.2,
      .other = 0.1,
      .evaluation = 0.04,
      .evaluations = 2};
  row.cost = {.weights = 1000,
              .live_weights = 1000,
              .multiply_adds = 2000,
              .activations = 100,
              .counted = true};
  row.batch = 10;
  return row;
}

TEST(BenchJson, DividesTimesByStepsAndRounds) {
  const auto json = nlohmann::json::parse(bench_json({made_up()}));
  EXPECT_DOUBLE_EQ(json["ms_per_client_step"], 2.0);
  EXPECT_DOUBLE_EQ(json["client_steps_per_second"], 500.0);
  EXPECT_DOUBLE_EQ(json["training_ms"], 100.0);
  EXPECT_DOUBLE_EQ(json["other_ms"], 50.0);
  EXPECT_DOUBLE_EQ(json["evaluation_ms"], 20.0);
  // 4 (7 x 1000 + 100 x 10) bytes 500 times a second, of 10^9.
  EXPECT_NEAR(json["fraction_of_copy_rate"], 32000 * 500 / 1e9, 1e-12);
  // 6 x 2000 x 10 operations.
  EXPECT_NEAR(json["fraction_of_tf32_rate"], 120000 * 500 / 1e9, 1e-12);
}

TEST(BenchTable, HasARowForEachNumberOfClientsAndDashesForWhatIsNotKnown) {
  BenchRow cpu = made_up();
  cpu.times.gauge = {.device = "test"};
  cpu.times.clients = 7;
  const std::string table = bench_table({made_up(), cpu});
  EXPECT_THAT(table, testing::HasSubstr("1.6 %"));
  EXPECT_THAT(table, testing::HasSubstr("3.00"));
  EXPECT_THAT(table, testing::ContainsRegex("7 .*-.*-.*-\n"));
  EXPECT_EQ(bench_table({}), "");
}

TEST(BenchRounds, CountsTheStepsOfTimedRoundsOnly) {
  Recipe recipe;
  recipe.data = {.name = "synthetic", .clients = 4, .dimension = 5, .examples = 10};
  recipe.client = {.epochs = 2, .batch = 5, .remainder = Remainder::drop};
  recipe.server.clients_per_round = 4;
  recipe.phases.push_back({.algorithm = "fed_avg", .rounds = 10});
  std::size_t steps = 0;
  const auto task = make_task(resolved(recipe), "");
  for (const auto& [id, examples] : task->data()->clients())
    steps += examples * 2 / 5;  // pooled epochs
  const RoundTimes times =
      bench_rounds({.recipe = resolved(recipe), .warm_up = 1, .rounds = 3, .evaluate = true}, *task,
                   find_place("cpu", 1), {});
  EXPECT_EQ(times.rounds, 3u);
  EXPECT_EQ(times.steps, 3 * steps);
  EXPECT_EQ(times.clients, 4u);
  EXPECT_GT(times.training, 0);
  EXPECT_EQ(times.gauge.device, "cpu, one core");
  EXPECT_EQ(times.evaluations, 1u);
}

}  // namespace
}  // namespace fedep
