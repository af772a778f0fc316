#include "app/posterior/evaluate_command.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/test_run.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Evaluate, ARunScoresAsItsLogSays) {
  const TestRun run;
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {.samples = 20});
  const RoundRecord last = read_history(run.path() / "log.jsonl").rounds.at(5);
  const Json json = evaluation_json(report);
  for (const char* name : {"accuracy", "nll", "auc", "ece", "brier"}) {
    EXPECT_DOUBLE_EQ(json["metrics"][name], score_of(last, name)) << name;
    EXPECT_TRUE(json["metrics"][std::string(name) + "_marginal"].is_number());
  }
  EXPECT_GT(json["metrics"]["auc"].get<double>(), 0.8);  // age tells
  EXPECT_EQ(json["per_client"].size(), 3u);
  EXPECT_EQ(json["examples"], 60);
  for (const char* kind : {"point", "marginal"}) {
    double weight = 0;
    EXPECT_EQ(json["reliability"][kind].size(), 15u);
    for (const Json& bin : json["reliability"][kind]) weight += bin["weight"].get<double>();
    EXPECT_NEAR(weight, 1, 1e-12);
  }
}

TEST(Evaluate, TheTextHasBothColumnsAndClients) {
  const TestRun run;
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {});
  const std::string text = evaluation_text(report, true);
  EXPECT_THAT(text, HasSubstr("60 held-out examples of 3 clients"));
  EXPECT_THAT(text, HasSubstr("point  marginal"));
  EXPECT_THAT(text, HasSubstr("ece_equal_mass"));
  EXPECT_THAT(text, HasSubstr("\nA  "));
  EXPECT_THAT(evaluation_text(report, false), Not(HasSubstr("\nA  ")));
}

TEST(Evaluate, TakesAsManyDrawsAsTheRunDid) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.evaluate.samples = 7;
  const auto run = folder.path() / "run";
  run_recipe(recipe, {.out = run, .data = folder.path()});
  const RoundRecord last = read_history(run / "log.jsonl").rounds.at(5);
  const EvaluateReport report = evaluate_run(run, folder.path(), {});
  EXPECT_EQ(report.samples, 7);
  EXPECT_DOUBLE_EQ(evaluation_json(report)["metrics"]["nll_marginal"],
                   score_of(last, "nll_marginal"));
  EXPECT_THAT(evaluation_text(report, false), HasSubstr("mean prediction of 7 draws"));
}

TEST(Evaluate, APointEstimateHasNoMarginal) {
  const TestRun run(kFedAvg);
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {});
  EXPECT_EQ(report.samples, 0);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("no posterior")));
  EXPECT_FALSE(evaluation_json(report)["reliability"].contains("marginal"));
}

TEST(Evaluate, ScoresWhatTheRunScored) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedAvg));
  recipe.data.validation_fraction = 0.3;
  const Metrics last =
      run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()}).result.metrics;
  const EvaluateReport report = evaluate_run(folder.path() / "run", folder.path(), {});
  EXPECT_EQ(report.scores.metrics.at(0), last.at(0));
}

TEST(Evaluate, OtherDataThanTheRunsAreRefused) {
  const TestRun run;
  std::string wider = ward_table();
  for (std::size_t at = 0; (at = wider.find('\n', at)) != std::string::npos; at += 3) {
    wider.insert(at, at < 40 ? ",x" : ",1");
  }
  const TemporaryFolder other;
  other.write("wards.csv", wider);
  EXPECT_THAT(message_of<InputError>([&] { evaluate_run(run.path(), other.path(), {}); }),
              HasSubstr("data must be those of the run"));
}

// The same columns in another order have the same shapes.
TEST(Evaluate, OtherColumnsOfTheSameShapeAreRefusedToo) {
  const TestRun run;
  std::string swapped = ward_table();
  swapped.replace(swapped.find("age,sodium"), 10, "sodium,age");
  const TemporaryFolder other;
  other.write("wards.csv", swapped);
  EXPECT_THAT(message_of<InputError>([&] { evaluate_run(run.path(), other.path(), {}); }),
              HasSubstr("data must be those of the run"));
  EXPECT_GT(evaluate_run(run.path(), run.folder().path(), {}).scores.examples, 0u);
}

}  // namespace
}  // namespace fedep
