// What becomes of a server's average and of temperatures once a run has them: they are kept,
// gone on from, scored, exported and predicted with.
#include <cmath>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_file.h"
#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/message/error.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

Recipe averaged(const char* phase, int rounds = 6, AverageKind kind = AverageKind::exponential) {
  Recipe recipe = parse_recipe(ward_recipe(phase));
  recipe.data.calibration_fraction = 0.4;
  recipe.phases[0].rounds = rounds;
  recipe.phases[0].average = AverageSettings{.kind = kind, .rounds = 3};
  recipe.evaluate.samples = 8;
  return recipe;
}

struct AveragedCase {
  const char* name;
  const char* phase;
  AverageKind kind = AverageKind::exponential;
};

class Averaged : public testing::TestWithParam<AveragedCase> {
 protected:
  Averaged() {
    folder_.write("wards.csv", ward_table());
    play(run_, recipe());
  }

  Recipe recipe(int rounds = 6) const {
    return averaged(GetParam().phase, rounds, GetParam().kind);
  }
  void play(const fs::path& out, const Recipe& recipe, bool resume = false) const {
    run_recipe(recipe, {.out = out, .data = folder_.path(), .resume = resume});
  }

  TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "run";
  const RoundRecord last() const { return read_history(run_ / "log.jsonl").rounds.at(5); }
};

TEST_P(Averaged, ARunThatWasStoppedGoesOnToTheSameBits) {
  const SavedPosterior whole = read_posterior(run_);
  EXPECT_EQ(whole.state.average.rounds, GetParam().kind == AverageKind::tail ? 3 : 6);
  EXPECT_GT(whole.state.temperatures.average, 0);
  Recipe often = recipe();
  often.checkpoint.every = 1;
  often.checkpoint.keep = 6;
  for (const int stopped_after : {1, 3, 4, 5}) {
    const fs::path other = folder_.path() / fmt::format("stopped-{}", stopped_after);
    play(other, often);
    for (int later = stopped_after + 1; later <= 6; ++later) {
      fs::remove(other / fmt::format("checkpoint-{}.safetensors", later));
    }
    play(other, often, true);
    EXPECT_EQ(read_posterior(other).state, whole.state) << stopped_after;
  }
}

TEST_P(Averaged, ARunThatIsMadeLongerHasTheBitsOfTheLongOne) {
  const fs::path other = folder_.path() / "other";
  play(other, recipe(3));
  play(other, recipe(), true);
  EXPECT_EQ(read_posterior(other).state, read_posterior(run_).state);
}

TEST_P(Averaged, IsScoredOnDemandAsTheLogSays) {
  const EvaluateReport report = evaluate_run(run_, folder_.path(), {.samples = 8, .average = true});
  const Json metrics = evaluation_json(report)["metrics"];
  EXPECT_DOUBLE_EQ(metrics["nll"], score_of(last(), "nll_average"));
  EXPECT_DOUBLE_EQ(metrics["ece"], score_of(last(), "ece_average"));
  EXPECT_DOUBLE_EQ(metrics["nll_calibrated"], score_of(last(), "nll_average_calibrated"));
  EXPECT_DOUBLE_EQ(metrics["nll_marginal"], score_of(last(), "nll_average_marginal"));
  EXPECT_DOUBLE_EQ(metrics["nll_calibrated_marginal"],
                   score_of(last(), "nll_average_calibrated_marginal"));
}

// The page shows evaluation.json as the run's own.
TEST_P(Averaged, IsScoredIntoAFileOfItsOwn) {
  const auto bytes = read_file(run_ / "evaluation.json");
  Command app("fedep", "fedep");
  int exit_code = 0;
  add_evaluate_command(app, exit_code);
  testing::internal::CaptureStdout();
  app.parse("evaluate " + run_.string() + " --average --data " + folder_.path().string());
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::HasSubstr("of the server's average over rounds"));
  EXPECT_EQ(read_file(run_ / "evaluation.json"), bytes);
  EXPECT_TRUE(fs::exists(run_ / "evaluation-average.json"));
}

TEST_P(Averaged, QIsScoredAfterItsOwnTemperature) {
  const Json metrics =
      evaluation_json(evaluate_run(run_, folder_.path(), {.samples = 8}))["metrics"];
  EXPECT_DOUBLE_EQ(metrics["nll"], score_of(last(), "nll"));
  EXPECT_DOUBLE_EQ(metrics["nll_calibrated"], score_of(last(), "nll_calibrated"));
}

TEST_P(Averaged, IsExportedWithItsTemperature) {
  const fs::path out = folder_.path() / "exported";
  export_safetensors(run_, out);
  const SavedPosterior saved = read_posterior(run_);
  const SafetensorsFile file = read_safetensors(out / "average.safetensors");
  std::vector<float> values;
  for (const TensorShape& tensor : saved.layout) {
    const std::vector<float>& part = file.get<float>(tensor.name);
    values.insert(values.end(), part.begin(), part.end());
  }
  EXPECT_EQ(HostVector<float>(values), saved.state.average.mean);
  EXPECT_EQ(std::stod(file.metadata.at("temperature")), saved.state.temperatures.average);
  EXPECT_TRUE(fs::exists(out / "average_spread.safetensors"));
  if (!saved.posterior) return;
  EXPECT_GT(saved.state.temperatures.marginal, 0);
  const SafetensorsFile draws = read_safetensors(export_draws(run_, out, 3));
  EXPECT_EQ(std::stod(draws.metadata.at("temperature")), saved.state.temperatures.marginal);
}

TEST_P(Averaged, PredictionsAreAtTheTemperatureUnlessTheyAreNotToBe) {
  const fs::path rows = folder_.write("new.csv", "age,sodium,unit\n30,140,ICU\n85,138,CCU\n");
  const auto predict = [&](bool average, bool temperature) {
    return predict_file(run_, rows, "", 0, {.average = average, .temperature = temperature});
  };
  const Temperatures kept = read_posterior(run_).state.temperatures;
  for (const bool average : {false, true}) {
    std::vector<double> expected = predict(average, false).values;
    const double temperature = average ? kept.average : kept.point;
    const std::vector<double> found = predict(average, true).values;
    ASSERT_EQ(found.size(), 4u);
    for (std::size_t i = 0; i < 4; i += 2) {
      const double odds = std::log(expected[i + 1] / expected[i]) / temperature;
      EXPECT_NEAR(found[i + 1], 1 / (1 + std::exp(-odds)), 1e-9);
    }
  }
  EXPECT_NE(predict(true, false).values, predict(false, false).values);
}

// It is a part of the entropy before the temperature, and may be larger than that after it.
TEST_P(Averaged, MutualInformationIsOfPredictionsBeforeTheTemperature) {
  const fs::path rows = folder_.write("new.csv", "age,sodium,unit\n30,140,ICU\n85,138,CCU\n");
  const PredictedRows before =
      predict_file(run_, rows, "", 8, {.average = true, .temperature = false});
  const PredictedRows after = predict_file(run_, rows, "", 8, {.average = true});
  EXPECT_EQ(before.mutual_information, after.mutual_information);
  EXPECT_NE(before.entropy, after.entropy);
  const auto says = testing::Contains(
      testing::HasSubstr("mutual_information of predictions before it and no part of that"));
  EXPECT_THAT(after.notes, says);
  EXPECT_THAT(before.notes, testing::Not(says));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Averaged,
                         testing::Values(AveragedCase{"FedAvg", kFedAvg},
                                         AveragedCase{"FedEp", kFedEp},
                                         AveragedCase{"FedAvgsTail", kFedAvg, AverageKind::tail}),
                         [](const auto& given) { return given.param.name; });

// Rounds that are no longer among the last ones cannot be taken out again.
TEST(AveragedRun, CannotBecomeLongerByLessThanItsTail) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  const auto play = [&](int rounds, bool resume) {
    run_recipe(averaged(kFedAvg, rounds, AverageKind::tail),
               {.out = folder.path() / "run", .data = folder.path(), .resume = resume});
  };
  play(6, false);
  EXPECT_THAT(
      [&] { play(8, true); },
      testing::ThrowsMessage<InputError>(testing::AllOf(
          testing::HasSubstr("average must be of 1 of the phase's last 3 rounds, but is of 3"),
          testing::HasSubstr("must become longer by at least 3 rounds"))));
  play(9, true);
  EXPECT_EQ(read_posterior(folder.path() / "run").state.average.rounds, 3);
}

// evaluate.samples = 0: a temperature is fitted to the average, and none to draws around it.
class AveragedWithoutDraws : public testing::Test {
 protected:
  AveragedWithoutDraws() {
    folder_.write("wards.csv", ward_table());
    Recipe recipe = averaged(kFedAvg);
    recipe.evaluate.samples = 0;
    run_recipe(recipe, {.out = run_, .data = folder_.path()});
  }

  PredictedRows predict(std::optional<int> samples, bool temperature = true) const {
    return predict_file(run_, rows_, "", samples, {.average = true, .temperature = temperature});
  }

  TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "run";
  const fs::path rows_ = folder_.write("new.csv", "age,sodium,unit\n30,140,ICU\n85,138,CCU\n");
};

TEST_F(AveragedWithoutDraws, IsPredictedAtItsTemperatureUnlessDrawsAreAskedFor) {
  const PredictedRows usual = predict({});
  EXPECT_EQ(usual.samples, 0);
  EXPECT_EQ(usual.values, predict(0).values);
  EXPECT_NE(usual.values, predict(0, false).values);
  EXPECT_THAT(usual.notes,
              testing::Contains(testing::AllOf(
                  testing::HasSubstr("at temperature"),
                  testing::HasSubstr("draws around the average have no temperature"))));
  const PredictedRows drawn = predict(8);
  EXPECT_EQ(drawn.samples, 8);
  EXPECT_EQ(drawn.values, predict(8, false).values);
  EXPECT_THAT(drawn.notes, testing::Contains(testing::HasSubstr("at no temperature")));
  EXPECT_GT(predict({}, false).samples, 0);  // at no temperature draws are as good
}

TEST_F(AveragedWithoutDraws, HasNoCalibratedScoresOfDraws) {
  const EvaluateReport report = evaluate_run(run_, folder_.path(), {.samples = 8, .average = true});
  const Json json = evaluation_json(report);
  EXPECT_TRUE(json["metrics"].contains("nll_calibrated"));
  EXPECT_TRUE(json["metrics"].contains("nll_marginal"));
  EXPECT_FALSE(json["metrics"].contains("nll_calibrated_marginal"));
  EXPECT_TRUE(json["selective"].contains("point_calibrated"));
  EXPECT_FALSE(json["selective"].contains("marginal_calibrated"));
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("without a temperature")));
  EXPECT_THAT(evaluation_text(report, true), testing::HasSubstr("nll_calibrated"));
}

void run_with_checkpoints(Recipe recipe, const TemporaryFolder& folder) {
  folder.write("wards.csv", ward_table());
  recipe.checkpoint.every = 1;
  recipe.checkpoint.keep = 6;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
}

// Temperatures of round 5 are none of draws, which were made after round 4.
TEST(AveragedRun, SaysInWhichRoundTemperaturesWereFittedWithoutDraws) {
  const TemporaryFolder folder;
  Recipe recipe = averaged(kFedAvg);
  recipe.evaluate.marginal_every = 4;
  recipe.evaluate.calibrated_every = 5;
  run_with_checkpoints(recipe, folder);
  const auto notes_of = [&](int round) {
    const fs::path file = folder.path() / fmt::format("run/checkpoint-{}.safetensors", round);
    return evaluate_run(file, folder.path(), {.samples = 8, .average = true}).notes;
  };
  EXPECT_THAT(notes_of(5),
              testing::Contains(testing::HasSubstr(
                  "the latest temperatures are of round 5, in which the run made none")));
  EXPECT_THAT(notes_of(6), testing::Not(testing::Contains(testing::HasSubstr("temperatures"))));
  const fs::path rows = folder.write("new.csv", "age,sodium,unit\n30,140,ICU\n");
  const fs::path fifth = folder.path() / "run/checkpoint-5.safetensors";
  EXPECT_THAT(predict_file(fifth, rows, "", {}, {.average = true}).notes,
              testing::Contains(testing::HasSubstr("are of round 5, in which the run made none")));
}

TEST(AveragedRun, SaysOfWhichRoundItsTemperaturesAre) {
  const TemporaryFolder folder;
  Recipe recipe = averaged(kFedAvg);
  recipe.evaluate.calibrated_every = 2;
  run_with_checkpoints(recipe, folder);
  const fs::path file = folder.path() / "run/checkpoint-3.safetensors";
  EXPECT_THAT(evaluate_run(file, folder.path(), {.samples = 8, .average = true}).notes,
              testing::Contains(testing::HasSubstr("clients fitted after round 2")));
}

// Another number of draws has another temperature.
TEST(AveragedRun, SaysThatFewDrawsHadTheirTemperature) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = averaged(kFedAvg);
  recipe.evaluate.samples = 2;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const fs::path rows = folder.write("new.csv", "age,sodium,unit\n30,140,ICU\n");
  const fs::path run = folder.path() / "run";
  const auto is_said = testing::Contains(testing::HasSubstr("averages over 2 of them"));
  const auto predicted = [&](int draws) {
    return predict_file(run, rows, "", draws, {.average = true}).notes;
  };
  const auto scored = [&](int draws) {
    return evaluate_run(run, folder.path(), {.samples = draws, .average = true}).notes;
  };
  EXPECT_THAT(predicted(8), is_said);
  EXPECT_THAT(scored(8), is_said);
  EXPECT_THAT(predicted(2), testing::Not(is_said));
  EXPECT_THAT(scored(2), testing::Not(is_said));
}

TEST(AveragedRun, OfANumberHasNoDeviationThatCouldBeTakenForAnInterval) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = averaged(kFedEp);
  recipe.data.calibration_fraction = 0;
  recipe.data.label = LabelKind::number;
  recipe.data.label_column = "sodium";
  recipe.data.label_positive = {};
  recipe.data.features = {"age"};
  recipe.data.categories = {};
  recipe.model.noise = 2;
  recipe.client.optimizer.lr = 0.001;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const fs::path rows = folder.write("new.csv", "age\n30\n85\n");
  const auto predict = [&](bool average) {
    return predict_file(folder.path() / "run", rows, "", 8, {.average = average});
  };
  EXPECT_GT(predict(false).values.at(1), 2);  // noise, and what is not known of the weights
  EXPECT_DOUBLE_EQ(predict(true).values.at(1), 2);
}

TEST(AveragedRun, OfACountHasTheDeviationOfAPoissonCountAlone) {
  const TemporaryFolder folder;
  std::string table = "ward,falls,age\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("{},{},{}\n", "ABC"[i % 3], i % 4, 50 + i % 9);
  folder.write("wards.csv", table);
  Recipe recipe = averaged(kFedEp);
  recipe.data.calibration_fraction = 0;
  recipe.data.label = LabelKind::count;
  recipe.data.label_column = "falls";
  recipe.data.label_positive = {};
  recipe.data.categories = {};
  recipe.client.optimizer.lr = 0.001;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const fs::path rows = folder.write("new.csv", "age\n55\n");
  const auto predict = [&](bool average) {
    return predict_file(folder.path() / "run", rows, "", 8, {.average = average}).values;
  };
  EXPECT_GT(predict(false).at(1), std::sqrt(predict(false).at(0)));
  EXPECT_DOUBLE_EQ(predict(true).at(1), std::sqrt(predict(true).at(0)));
}

TEST(AveragedRun, ThatHasNotBegunYetSaysWhenItDoes) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = averaged(kFedAvg, 6, AverageKind::tail);
  recipe.checkpoint.every = 2;
  recipe.checkpoint.keep = 3;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const auto at = [&](int round) {
    evaluate_run(folder.path() / fmt::format("run/checkpoint-{}.safetensors", round), folder.path(),
                 {.average = true});
  };
  EXPECT_THAT([&] { at(2); },
              testing::ThrowsMessage<InputError>(testing::HasSubstr(
                  "last 3 rounds, which begin after round 3, and this is round 2")));
  EXPECT_NO_THROW(at(4));
}

// Of a point estimate it would be the smallest number that a spread may have.
TEST(AveragedRun, OfOneRoundHasNoSpread) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  Recipe recipe = averaged(kFedAvg, 6, AverageKind::tail);
  recipe.phases[0].average->rounds = 1;
  run_recipe(recipe, {.out = run, .data = folder.path()});
  export_safetensors(run, out);
  EXPECT_TRUE(fs::exists(out / "average.safetensors"));
  EXPECT_FALSE(fs::exists(out / "average_spread.safetensors"));
  const fs::path rows = folder.write("new.csv", "age,sodium,unit\n30,140,ICU\n");
  const auto says = testing::Contains(testing::HasSubstr("an average of one round has no spread"));
  EXPECT_THAT(predict_file(run, rows, "", 8, {.average = true}).notes, says);
  EXPECT_THAT(evaluate_run(run, folder.path(), {.samples = 8, .average = true}).notes, says);
}

TEST(AveragedRun, WithoutOneNothingIsScoredOrPredictedWithIt) {
  const TestRun run;
  EXPECT_THAT([&] { evaluate_run(run.path(), run.folder().path(), {.average = true}); },
              testing::ThrowsMessage<InputError>(testing::HasSubstr("must have kept an average")));
}

}  // namespace
}  // namespace fedep
