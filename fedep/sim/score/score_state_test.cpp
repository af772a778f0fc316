#include "fedep/sim/score/score_state.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/round/executor_place.h"
#include "fedep/round/run.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/task.h"

namespace fedep {
namespace {

Recipe recipe(const std::string& data, const std::string& phase,
              const std::string& evaluate = "every = 1") {
  return parse_recipe("seed = 1\n[data]\nname = \"synthetic\"\nclients = 6\nexamples = 60\n" +
                      data +
                      "\n[client]\nepochs = 3\nbatch = 10\noptimizer = { lr = 0.05, momentum = "
                      "0.5 }\n[server]\nclients_per_round = 3\n[[phase]]\nrounds = 8\n" +
                      phase + "\n[evaluate]\n" + evaluate + "\n");
}

struct Played {
  ServerState state;
  Metrics metrics;
  std::vector<Metrics> all;
};

Played play(const Recipe& recipe) {
  const auto task = make_task(recipe, {});
  const auto sites = make_memory_store();
  const auto place = find_place("cpu", 1).make(recipe, *task, *sites, {});
  const std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  Played played;
  const RunHooks hooks{
      .watch = [&](const RoundReport& round) { played.all.push_back(round.metrics); }};
  RunResult result = play_run({recipe, phases, task->population(), task->layout(), *place},
                              task->initial_weights(), hooks);
  played.state = std::move(result.state);
  played.metrics = std::move(result.metrics);
  return played;
}

double score(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no score " << name;
  return NAN;
}
bool has(const Metrics& metrics, std::string_view name) {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

constexpr const char* kAverage =
    "algorithm = \"fed_avg\"\naverage = { kind = \"exponential\", rounds = 3 }";

TEST(ScoreState, ScoresTheAverageBesideQ) {
  const Recipe averaged = recipe("", kAverage);
  const Played played = play(averaged);
  for (const char* name : {"accuracy_average", "nll_average", "ece_average", "brier_average"}) {
    EXPECT_TRUE(has(played.metrics, name)) << name;
  }
  EXPECT_EQ(played.state.average.rounds, 8);
  const auto task = make_task(averaged, {});
  ServerState there = played.state;
  there.global = from_mean(played.state.average.mean, 1.0f);
  EXPECT_EQ(score(task->evaluate(there, true), "nll"), score(played.metrics, "nll_average"));
}

TEST(ScoreState, AnAverageChangesNothingOfQ) {
  const Played with = play(recipe("", kAverage));
  const Played without = play(recipe("", "algorithm = \"fed_avg\""));
  EXPECT_EQ(with.state.global, without.state.global);
  EXPECT_FALSE(has(without.metrics, "accuracy_average"));
}

TEST(ScoreState, DrawsAroundTheAverageAreMarginalised) {
  const Played played = play(recipe("", kAverage, "every = 1\nsamples = 4"));
  EXPECT_TRUE(has(played.metrics, "accuracy_average_marginal"));
  EXPECT_FALSE(has(played.metrics, "accuracy_marginal"));  // FedAvg's q has no draws
  EXPECT_FALSE(has(played.all[0], "accuracy_average_marginal"));
}

TEST(ScoreState, TemperaturesAreFittedAtTheEndAndKept) {
  const Played played =
      play(recipe("calibration_fraction = 0.2", kAverage, "every = 1\nsamples = 2"));
  for (const char* name :
       {"temperature", "temperature_average", "temperature_average_marginal", "nll_calibrated",
        "ece_calibrated", "nll_average_calibrated", "nll_average_calibrated_marginal"}) {
    EXPECT_TRUE(has(played.metrics, name)) << name;
    EXPECT_FALSE(has(played.all[3], name)) << name;
  }
  EXPECT_FALSE(has(played.metrics, "accuracy_calibrated"));
  const Temperatures& kept = played.state.temperatures;
  EXPECT_EQ(kept.round, 8);
  EXPECT_EQ(kept.point, score(played.metrics, "temperature"));
  EXPECT_EQ(kept.average, score(played.metrics, "temperature_average"));
  EXPECT_GT(kept.average_marginal, 0);
  EXPECT_EQ(kept.marginal, 0);
}

TEST(ScoreState, TemperaturesAreFittedAsOftenAsIsAsked) {
  const Played played = play(recipe("calibration_fraction = 0.2", "algorithm = \"fed_avg\"",
                                    "every = 1\ncalibrated_every = 3"));
  for (std::size_t round = 0; round < 8; ++round) {
    EXPECT_EQ(has(played.all[round], "temperature"), round == 2 || round == 5 || round == 7);
  }
}

TEST(ScoreState, APosteriorHasATemperatureOfItsDraws) {
  const Played played =
      play(recipe("calibration_fraction = 0.2",
                  "algorithm = \"fed_sep\"\naverage = { rounds = 4 }\ninference = { name = "
                  "\"scaled_identity\" }",
                  "every = 0\nsamples = 3"));
  EXPECT_TRUE(has(played.metrics, "nll_calibrated_marginal"));
  EXPECT_GT(played.state.temperatures.marginal, 0);
  EXPECT_GT(played.state.average.lambda_number, 0);
}

TEST(ScoreState, CalibrationRowsAreNobodysToTrainOn) {
  const auto task = make_task(recipe("calibration_fraction = 0.2", kAverage), {});
  const Dataset& data = *task->data();
  std::size_t left = 0, all = 0;
  const auto whole = make_task(recipe("", kAverage), {});
  for (const auto& [id, examples] : data.clients()) left += examples;
  for (const auto& [id, examples] : whole->data()->clients()) all += examples;
  EXPECT_EQ(left + data.calibration()->test_size(), all);
  EXPECT_EQ(task->population().examples(), left);
  EXPECT_EQ(data.test_size(), whole->data()->test_size());
}

// Both fractions are of what a client has to train on.
TEST(ScoreState, ACalibrationFractionIsOfAllTrainingRows) {
  const auto calibration_rows = [](const std::string& data) {
    return double(make_task(recipe(data, kAverage), {})->data()->calibration()->test_size());
  };
  const double alone = calibration_rows("calibration_fraction = 0.3");
  const double beside = calibration_rows("calibration_fraction = 0.3\nvalidation_fraction = 0.5");
  EXPECT_NEAR(beside / alone, 1, 0.15);
}

TEST(ScoreState, NumbersHaveNoTemperature) {
  Recipe numbers = recipe("calibration_fraction = 0.2", kAverage);
  numbers.data.name = "regression";
  EXPECT_EQ(message_of<InputError>([&] { (void)make_task(numbers, {}); }),
            "data.calibration_fraction must be 0 where a number, a count or a time to event is "
            "predicted: a temperature is of probabilities");
}

TEST(ScoreState, FractionsThatLeaveNothingAreRefused) {
  EXPECT_THROW((void)make_task(
                   recipe("validation_fraction = 0.6\ncalibration_fraction = 0.4", kAverage), {}),
               InputError);
}

}  // namespace
}  // namespace fedep
