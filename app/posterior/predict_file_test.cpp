#include "app/posterior/predict_file.h"

#include <cmath>
#include <filesystem>
#include <numbers>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/prediction_formats.h"
#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StrEq;

const char* const kNew = "age,sodium,unit\n25,140,ICU\n85,140,ICU\n60,,CCU\n900,140,ICU\n";

TEST(Predict, NewRowsNeedNoTrainingData) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const PredictedRows with = predict_file(run.path(), file, run.folder().path(), 50);
  std::filesystem::remove(run.folder().path() / "wards.csv");
  const PredictedRows rows = predict_file(run.path(), file, "", 50);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows.values, with.values);
  EXPECT_LT(rows.values[1], 0.3);  // p_yes at 25
  EXPECT_GT(rows.values[3], 0.7);  // and at 85
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(rows.values[2 * i] + rows.values[2 * i + 1], 1, 1e-12);
    EXPECT_GE(rows.mutual_information[i], 0);
    EXPECT_GE(rows.entropy[i], rows.mutual_information[i]);
  }
  EXPECT_GT(rows.entropy[2], rows.entropy[0]);  // 60 is in the middle
  EXPECT_FALSE(rows.outlier(0));
  EXPECT_TRUE(rows.outlier(3));  // nobody is 900
}

// More rows than are predicted at a time, each with the prediction that it has alone.
TEST(Predict, ARowsPredictionDoesNotDependOnWhereItStands) {
  const TestRun run;
  std::string text = "age,sodium,unit\n";
  for (int i = 0; i < 1203; ++i) text += fmt::format("{},140,ICU\n", 20 + i % 70);
  const PredictedRows all = predict_file(run.path(), run.write("many.csv", text), "", 3);
  ASSERT_EQ(all.size(), 1203u);
  for (const std::size_t i : {0u, 499u, 500u, 999u, 1000u, 1202u}) {
    const auto alone =
        run.write("one.csv", fmt::format("age,sodium,unit\n{},140,ICU\n", 20 + i % 70));
    const PredictedRows one = predict_file(run.path(), alone, "", 3);
    EXPECT_NEAR(all.values[2 * i], one.values[0], 1e-6) << i;
    EXPECT_NEAR(all.entropy[i], one.entropy[0], 1e-6) << i;
    EXPECT_NEAR(all.outliers.scores[i], one.outliers.scores[0], 1e-6) << i;
  }
}

TEST(Predict, ACheckpointAloneTakesScalesFromItsDataSet) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const TemporaryFolder elsewhere;
  const auto alone = elsewhere.path() / "alone.safetensors";
  std::filesystem::copy_file(run.checkpoint(), alone);
  const PredictedRows rows = predict_file(alone, file, run.folder().path(), 10);
  EXPECT_EQ(rows.values, predict_file(run.path(), file, "", 10).values);
  EXPECT_EQ(rows.outliers.threshold, predict_file(run.path(), file, "", 10).outliers.threshold);
}

// An outcome that is a number.
Recipe sodium_by_age() {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.data.label = LabelKind::number;
  recipe.data.label_column = "sodium";
  recipe.data.label_positive = {};
  recipe.data.categories = {};
  recipe.data.features = {"age"};
  return recipe;
}

// A row without an age stands at its mean, where the intercept alone speaks: its prediction scatters
// by the noise and by the intercept's own variance 1/λ.
TEST(Predict, ANumbersDeviationHoldsTheNoiseAndWhatIsNotKnownOfTheWeights) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = sodium_by_age();
  recipe.model.noise = 0.5;
  recipe.client.optimizer.lr = 0.01;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const auto file = folder.write("new.csv", "age\nNA\n90\n");
  const SavedPosterior saved = read_posterior(folder.path() / "run");
  ASSERT_TRUE(saved.posterior);
  const HostVector<float> lambda = saved.state.global.lambda_full();
  const double unknown = 1 / double(lambda[1]), noise = 0.25;
  const auto variance = [](const PredictedRows& rows, std::size_t i) {
    return rows.values[2 * i + 1] * rows.values[2 * i + 1];
  };
  const PredictedRows point = predict_file(folder.path() / "run", file, "", 0);
  EXPECT_NEAR(variance(point, 0), noise, 1e-12);
  const PredictedRows drawn = predict_file(folder.path() / "run", file, "", 20000);
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(variance(drawn, 0) - noise, unknown, 0.06 * unknown);  // of draws: 1 % deviation
  EXPECT_GT(variance(drawn, 1), variance(drawn, 0) + 0.5 * unknown);
  for (std::size_t i = 0; i < 2; ++i) {
    const double entropy =
        0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance(drawn, i));
    EXPECT_NEAR(drawn.entropy[i], entropy, 1e-9);
  }
}

TEST(Predict, SaysWhatYesMeans) {
  const TestRun run;
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "");
  EXPECT_EQ(rows.notes.back(), "yes means that died is yes");
}

TEST(Predict, SaysHowManyDrawsItTook) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const PredictedRows rows = predict_file(run.path(), file, "");
  EXPECT_EQ(rows.samples, 500);  // 12 beyond each end
  EXPECT_EQ(rows.values, predict_file(run.path(), file, "", 500).values);
  EXPECT_EQ(predict_file(run.path(), file, "", {}, {.level = 0.99}).samples, 2500);
  EXPECT_EQ(predict_file(run.path(), file, "", 0).samples, 0);
}

TEST(Predict, OneDrawHasNoMutualInformation) {
  const TestRun run;
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 1);
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_EQ(rows.samples, 1);
  EXPECT_THAT(rows.notes, Contains(HasSubstr("one draw has no spread")));
  EXPECT_EQ(predict_file(run.path(), run.write("new.csv", kNew), "", 2).mutual_information.size(),
            4u);
}

TEST(Predict, APointEstimateHasNoMutualInformation) {
  const TestRun run(kFedAvg);
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 10);
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_THAT(rows.notes, Contains(HasSubstr("no posterior")));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"mutual_information\":null"));
}

TEST(Predict, ANumberHasNoDeviationWherePrecisionsWereNotInferred) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = sodium_by_age();
  recipe.client.optimizer.lr = 0.01;
  const auto predicted = [&](const std::string& method) {
    recipe.phases[0].inference =
        InferenceSettings{.name = method, .family = FamilyChoice::automatic};
    const auto run = folder.path() / method;
    run_recipe(recipe, {.out = run, .data = folder.path()});
    return predict_file(run, folder.write("new.csv", "age\n60\n"), "", 5);
  };
  recipe.server.grid_bits = 32;  // no matrices
  EXPECT_GT(predicted("laplace").values.at(1), 1);
  const PredictedRows rows = predicted("scaled_identity");
  EXPECT_TRUE(std::isnan(rows.values.at(1)));
  EXPECT_TRUE(std::isnan(rows.entropy.at(0)));
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_TRUE(rows.low.empty() && rows.outcome_low.empty());
  EXPECT_THAT(rows.no_interval, HasSubstr("precisions are set"));
  EXPECT_THAT(predictions_csv(rows), testing::ContainsRegex("\n1,[-0-9.]+,,,,,,,,"));
  EXPECT_THAT(predictions_jsonl(rows),
              HasSubstr("\"low\":null,\"high\":null,\"outcome_low\":null"));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"deviation\":null"));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"withheld\":\"precisions are set"));
}

// An interval's ends are draws of the probability, so they hold its mean, and the wider level holds the narrower.
TEST(Predict, ARiskHasAnIntervalThatWidensWithItsLevel) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const PredictedRows narrow = predict_file(run.path(), file, "", 800, {.level = 0.5});
  const PredictedRows wide = predict_file(run.path(), file, "", 800, {.level = 0.95});
  ASSERT_EQ(wide.low.size(), 4u);
  EXPECT_EQ(narrow.values, wide.values);
  for (std::size_t i = 0; i < 3; ++i) {  // at an age of 900 it is 1 in all but a few draws
    const double risk = wide.values[2 * i + 1];
    EXPECT_LT(wide.low[i], narrow.low[i]);
    EXPECT_LT(narrow.low[i], risk);
    EXPECT_LT(risk, narrow.high[i]);
    EXPECT_LT(narrow.high[i], wide.high[i]);
  }
}

// A linear model's logit is normal, and the logistic function keeps order.
TEST(Predict, AnIntervalIsThatOfTheNormalLogit) {
  const TestRun run;
  const auto file = run.write("new.csv", "age,sodium,unit\nNA,,\n");  // the intercept alone
  const PredictedRows rows = predict_file(run.path(), file, "", 20000);
  const SavedPosterior saved = read_posterior(run.path());
  const double mean_ = double(mean(saved.state.global)[3]);
  const double sd = std::sqrt(double(variance(saved.state.global)[3]));
  const auto logit = [](double p) { return std::log(p / (1 - p)); };
  EXPECT_NEAR(logit(rows.low[0]), mean_ - 1.96 * sd, 0.08 * sd);
  EXPECT_NEAR(logit(rows.high[0]), mean_ + 1.96 * sd, 0.08 * sd);
}

TEST(Predict, FewDrawsHaveACoarseIntervalOrNone) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const PredictedRows coarse = predict_file(run.path(), file, "", 100);
  EXPECT_EQ(coarse.low.size(), 4u);
  EXPECT_THAT(coarse.notes.at(0), HasSubstr("a number more than 5 deviations"));
  EXPECT_THAT(coarse.notes.at(1), HasSubstr("intervals are coarse: 2.5 of 100 draws"));
  const PredictedRows none = predict_file(run.path(), file, "", 39);
  EXPECT_TRUE(none.low.empty());
  EXPECT_THAT(none.notes.at(1), HasSubstr("39 draws cannot tell the ends of a 95 % interval"));
  EXPECT_EQ(predict_file(run.path(), file, "", 40).low.size(), 4u);
  EXPECT_EQ(predict_file(run.path(), file, "", 39, {.level = 0.8}).low.size(), 4u);
}

TEST(Predict, WithoutAPosteriorThereIsNoInterval) {
  const TestRun run(kFedAvg);
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 500);
  EXPECT_TRUE(rows.low.empty());
  EXPECT_THAT(rows.no_interval, HasSubstr("has no posterior"));
  EXPECT_THAT(predictions_csv(rows), HasSubstr(",,,no,"));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"low\":null,\"high\":null"));
}

// The interval of a number's mean is of what is not known; the outcome's has the noise too.
TEST(Predict, ANumberHasAnIntervalOfItsMeanAndAWiderOneOfItself) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = sodium_by_age();
  recipe.model.noise = 3;
  recipe.client.optimizer.lr = 0.05;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const auto file = folder.write("new.csv", "age\nNA\n90\n");
  const PredictedRows rows = predict_file(folder.path() / "run", file, "", 4000);
  ASSERT_EQ(rows.low.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const double mean = rows.values[2 * i], deviation = rows.values[2 * i + 1];
    const double spread = std::sqrt(deviation * deviation - 9);
    EXPECT_NEAR(rows.low[i], mean - 1.96 * spread, 0.2 * spread);
    EXPECT_NEAR(rows.high[i], mean + 1.96 * spread, 0.2 * spread);
    EXPECT_NEAR(rows.outcome_low[i], mean - 1.959964 * deviation, 1e-4);
    EXPECT_NEAR(rows.outcome_high[i], mean + 1.959964 * deviation, 1e-4);
    EXPECT_LT(rows.outcome_low[i], rows.low[i]);
  }
}

TEST(Predict, ACountsIntervalHasWholeEnds) {
  const TemporaryFolder folder;
  std::string text = "ward,falls,age\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},{},{}\n", "ABC"[i % 3], i % 7, 20 + i % 60);
  folder.write("wards.csv", text);
  Recipe recipe = parse_recipe(ward_recipe(kFullFedEp));
  recipe.data.label = LabelKind::count;
  recipe.data.label_column = "falls";
  recipe.data.label_positive = {};
  recipe.data.categories = {};
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const PredictedRows rows =
      predict_file(folder.path() / "run", folder.write("new.csv", "age\n50\n"), "");
  ASSERT_EQ(rows.outcome_low.size(), 1u);
  EXPECT_NEAR(rows.values[0], 3, 0.3);
  EXPECT_LT(rows.low[0], rows.values[0]);
  EXPECT_GT(rows.high[0], rows.values[0]);
  EXPECT_EQ(rows.outcome_low[0], 0);  // of a Poisson with mean 3
  EXPECT_EQ(rows.outcome_high[0], 7);
}

}  // namespace
}  // namespace fedep
