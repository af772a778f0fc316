#include "app/run/size_plan.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/sim/test_process.h"

namespace fedep {
namespace {

using testing::HasSubstr;

Recipe recipe_with(const std::vector<std::string>& changes) {
  return parse_recipe(R"([data]
name = "synthetic"
clients = 6
dimension = 5
examples = 30
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_avg"
rounds = 10
[[phase]]
algorithm = "fed_ep"
rounds = 10
[phase.inference]
name = "laplace"
)",
                      "recipe.toml", changes);
}

SizePlan plan_with(const std::vector<std::string>& changes) {
  const Recipe recipe = recipe_with(changes);
  const auto task = make_task(recipe, "");
  return plan_sizes(recipe, plan_run(recipe, *task), *task);
}

template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SizePlan, GrowsWithWhatARunDoes) {
  const SizePlan plan = plan_with({});
  EXPECT_GT(plan.data_bytes, 6 * 20 * 5 * 4);
  EXPECT_LT(plan.memory_bytes(), 1e6);
  EXPECT_LT(plan.seconds, 5);
  EXPECT_EQ(refusal([&] { check_sizes(plan, 1e9); }), "");
  EXPECT_NEAR(plan_with({"phase.1.rounds=2000", "phase.0.rounds=2000"}).seconds / plan.seconds, 200,
              60);
  EXPECT_GT(plan_with({"client.epochs=500"}).longest_round, 50 * plan.longest_round);
  EXPECT_GT(plan_with({"checkpoint.keep=50", "checkpoint.every=1"}).disk_bytes,
            3 * plan_with({"checkpoint.every=1"}).disk_bytes);
  EXPECT_GT(plan_with({"data.dimension=5000"}).model_bytes, 500 * plan.model_bytes);
}

// Words that a question does not have take no time, however many there are.
TEST(SizePlan, TakesTheTimeOfTheFeaturesThatRowsHave) {
  const auto seconds = [](const char* dimension) {
    return plan_with({"data={name='random_tags',clients=50,tags=20,examples=40}", dimension,
                      "client.epochs=500", "phase.1.algorithm='fed_avg'"})
        .seconds;
  };
  EXPECT_LT(seconds("data.dimension=20000") / seconds("data.dimension=2000"), 2);
}

TEST(SizePlan, CountsEveryElementOfAFullPrecision) {
  const std::vector<std::string> diagonal = {"data.name=regression", "data.dimension=400",
                                             "server.prior.precision=1"};
  std::vector<std::string> full = diagonal;
  full.push_back("phase.1.inference.family=full");
  const SizePlan small = plan_with(diagonal), large = plan_with(full);
  EXPECT_GT(large.model_bytes, 50 * small.model_bytes);
  EXPECT_GT(large.factor_bytes, 50 * small.factor_bytes);
}

// One for every round, whatever the number of checkpoints; at most so many of them in memory.
TEST(SizePlan, CountsMeansThatFactorsReferTo) {
  const std::vector<std::string> shared = {
      "data.name=random_tags", "data.clients=1000",     "data.dimension=10000",
      "data.tags=500",         "phase.0.rounds=1",      "phase.1.inference.name=scaled_identity",
      "checkpoint.sites=disk", "checkpoint.sparse=true"};
  std::vector<std::string> longer = shared;
  longer.push_back("phase.1.rounds=110");
  constexpr double kMean = 4.0 * 10001 * 500;
  const SizePlan few = plan_with(shared), many = plan_with(longer);
  EXPECT_DOUBLE_EQ(few.factor_bytes, 10 * kMean);
  EXPECT_DOUBLE_EQ(many.factor_bytes, 2e9);
  EXPECT_GT(many.disk_bytes - few.disk_bytes, 100 * kMean);
  EXPECT_LT(many.disk_bytes - few.disk_bytes, 200 * kMean);
}

TEST(SizePlan, IsInWordsThatAPersonReads) {
  EXPECT_EQ(to_text({.data_bytes = 2.1e7,
                     .model_bytes = 0,
                     .factor_bytes = 0,
                     .disk_bytes = 3.4e6,
                     .longest_round = 1,
                     .seconds = 720}),
            "about 21 MB of memory, 3.4 MB of disk and, on one core, 12 minutes");
  EXPECT_THAT(to_text({.seconds = 1e15}), HasSubstr("years"));
}

TEST(SizePlan, RefusesDataThatNoMemoryHolds) {
  EXPECT_EQ(refusal([] { check_data_size(recipe_with({"data.dimension=1000000000"}).data, 1e10); }),
            "data set synthetic with data.clients = 6, data.examples = 30 and data.dimension = "
            "1000000000 must fit into this machine's memory, 10 GB, but takes 1.1 TB");
  EXPECT_EQ(refusal([] { check_data_size(recipe_with({}).data, 1e10); }), "");
  EXPECT_EQ(refusal([] {
              check_data_size(recipe_with({"data.dimension=1000000000"}).data, std::nullopt);
            }),
            "");
}

TEST(SizePlan, RefusesARoundThatNobodyLivesToSee) {
  const SizePlan plan = plan_with({"client.epochs=2147483647", "data.examples=1000",
                                   "phase.1.inference.epochs=2147483647", "client.batch=1"});
  EXPECT_THAT(refusal([&] { check_sizes({.longest_round = 1e10}, 1e9); }),
              HasSubstr("a round must end within 10 years, but would take about 317 years"));
  EXPECT_GT(plan.longest_round, 1e6);
}

TEST(SizePlan, RefusesAClipWhoseGridRoundsEverythingAway) {
  const auto problem = [](const std::vector<std::string>& changes) {
    const Recipe recipe = recipe_with(changes);
    const auto task = make_task(recipe, "");
    return refusal([&] { (void)plan_run(recipe, *task); });
  };
  for (const char* fine : {"phase.0.clip=0", "phase.0.clip=100", "phase.0.clip=1e6"}) {
    EXPECT_EQ(problem({fine}), "") << fine;
    EXPECT_EQ(problem({fine, "server.grid_bits=32"}), "") << fine;
  }
  EXPECT_EQ(problem({"phase.0.clip=1e9"}), "");
  EXPECT_THAT(
      problem({"phase.0.clip=1e9", "server.grid_bits=32"}),
      HasSubstr("phase.0.clip must be at most 1.8e+08 where 3 clients' deltas are summed in "
                "32 bits"));
  EXPECT_THAT(problem({"phase.0.clip=1e18"}), HasSubstr("phase.0.clip must be at most"));
  EXPECT_THAT(problem({"phase.1.clip=1e22"}), HasSubstr("phase.1.clip must be at most"));
}

}  // namespace
}  // namespace fedep
