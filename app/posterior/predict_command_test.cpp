#include "app/posterior/predict_command.h"

#include <cmath>
#include <filesystem>
#include <numbers>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

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
    EXPECT_NEAR(all.outlier_score[i], one.outlier_score[0], 1e-6) << i;
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
  EXPECT_EQ(rows.threshold, predict_file(run.path(), file, "", 10).threshold);
}

TEST(Predict, CsvAndJsonSayTheSame) {
  const TestRun run;
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 10);
  std::istringstream csv(predictions_csv(rows)), lines(predictions_jsonl(rows));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(
      line,
      "row,p_no,p_yes,prediction,entropy,mutual_information,outlier_score,out_of_distribution");
  for (int i = 1; i <= 4; ++i) {
    std::getline(lines, line);
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["row"], i);
    std::getline(csv, line);
    EXPECT_THAT(line, HasSubstr(fmt::format("{},{:.6g},{:.6g},{},", i,
                                            json["probabilities"]["no"].get<double>(),
                                            json["probabilities"]["yes"].get<double>(),
                                            json["prediction"].get<std::string>())));
    EXPECT_TRUE(line.ends_with(json["out_of_distribution"].get<bool>() ? ",1" : ",0"));
  }
}

TEST(Predict, ColumnsAreNamedByTheOutcome) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  const auto new_rows = folder.write("new.csv", "age,sodium,died\n25,140,no\n");
  const auto header = [&](LabelKind label, const std::string& column) {
    Recipe recipe = parse_recipe(ward_recipe(kFedAvg));
    recipe.data.label = label;
    recipe.data.label_column = column;
    recipe.data.categories = {"died"};
    recipe.data.features = {"age"};
    const auto run = folder.path() / column;
    run_recipe(recipe, {.out = run, .data = folder.path()});
    const std::string csv = predictions_csv(predict_file(run, new_rows, ""));
    return csv.substr(0, csv.find(",entropy"));
  };
  EXPECT_EQ(header(LabelKind::classes, "unit"), "row,p_CCU,p_ICU,prediction");
  EXPECT_EQ(header(LabelKind::number, "sodium"), "row,mean,deviation");
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
  EXPECT_EQ(rows.notes, (std::vector<std::string>{"yes means that died is yes"}));
}

TEST(Predict, SaysHowManyDrawsItTook) {
  const TestRun run;
  const auto file = run.write("new.csv", kNew);
  const PredictedRows rows = predict_file(run.path(), file, "");
  EXPECT_EQ(rows.samples, 10);
  EXPECT_EQ(rows.values, predict_file(run.path(), file, "", 10).values);
  EXPECT_EQ(predict_file(run.path(), file, "", 0).samples, 0);
}

TEST(Predict, AColumnThatDidNotVaryIsNotReadAndOtherValuesAreTold) {
  const TemporaryFolder folder;
  const auto run = constant_run(folder);
  const auto predict = [&](const std::string& years) {
    std::string text = "age,sodium,unit,year,\"weight, kg\"\n";
    for (const char year : years) text += fmt::format("55,140,ICU,{},\n", year);
    return predict_file(run, folder.write("new.csv", text), "", 10);
  };
  const PredictedRows same = predict("555"), other = predict("597");
  EXPECT_EQ(same.values, other.values);
  EXPECT_FALSE(same.outlier(1));
  EXPECT_THAT(other.notes.at(0), HasSubstr("new.csv:3: 2 of 3 rows have another value"));
  EXPECT_FALSE(other.outlier(0));
  EXPECT_TRUE(other.outlier(1));
  EXPECT_TRUE(other.outlier(2));
}

TEST(Predict, OneDrawHasNoMutualInformation) {
  const TestRun run;
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 1);
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_EQ(rows.samples, 1);
  EXPECT_THAT(rows.notes.at(0), HasSubstr("one draw has no spread"));
  EXPECT_EQ(predict_file(run.path(), run.write("new.csv", kNew), "", 2).mutual_information.size(),
            4u);
}

TEST(Predict, APointEstimateHasNoMutualInformation) {
  const TestRun run(kFedAvg);
  const PredictedRows rows = predict_file(run.path(), run.write("new.csv", kNew), "", 10);
  EXPECT_TRUE(rows.mutual_information.empty());
  EXPECT_THAT(rows.notes.at(0), HasSubstr("no posterior"));
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
  EXPECT_THAT(predictions_csv(rows), testing::ContainsRegex("\n1,[-0-9.]+,,,,"));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"deviation\":null"));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"withheld\":\"precisions are set"));
}

TEST(Predict, WhatIsWrongWithAFileIsNamed) {
  const TestRun run;
  const auto refusal = [&](const std::string& text) {
    return message_of<InputError>(
        [&] { predict_file(run.path(), run.write("bad.csv", text), "", 10); });
  };
  EXPECT_THAT(refusal("age,unit\n25,ICU\n"), HasSubstr("column sodium"));
  EXPECT_THAT(refusal("age,sodium,unit\n25,140,ICU\nold,1,ICU\n"),
              HasSubstr("bad.csv:3: column age must be a number, but is old"));
  EXPECT_THAT(refusal("age,sodium,unit\n25,140,ICU\n1e300,1,ICU\n"),
              HasSubstr("bad.csv:3: column age must be a number that can be scaled, but is 1e300"));
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("age,sodium,unit\n"), HasSubstr("only a header"));
  EXPECT_THAT(message_of<InputError>([&] { predict_file(run.path(), "/nowhere.csv", "", 10); }),
              StrEq("predict: /nowhere.csv is missing"));
  const PredictedRows odd =
      predict_file(run.path(), run.write("odd.csv", "age,sodium,unit\n25,140,Ward 9\n"), "", 10);
  EXPECT_THAT(odd.notes.at(0), HasSubstr("odd.csv:2: 1 of 1 rows have a category"));
  run.folder().write("run/features.json", "{}");
  EXPECT_THAT(refusal(kNew), HasSubstr("features.json"));
}

}  // namespace
}  // namespace fedep
