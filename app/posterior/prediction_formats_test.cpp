#include "app/posterior/prediction_formats.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/test_run.h"

namespace fedep {
namespace {

using testing::HasSubstr;

const char* const kNew =
    "bed,age,sodium,unit\nb1,25,140,ICU\nb2,85,140,ICU\nb3,60,,CCU\nb4,900,140,ICU\n";

TEST(PredictionFormats, CsvAndJsonSayTheSame) {
  const TestRun run;
  const PredictedRows rows =
      predict_file(run.path(), run.write("new.csv", kNew), "", 50, {.id_column = "bed"});
  std::istringstream csv(predictions_csv(rows)), lines(predictions_jsonl(rows));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line,
            "row,id,p_no,p_yes,low,high,prediction,entropy,mutual_information,outlier_score,"
            "out_of_distribution,unlike");
  for (int i = 1; i <= 4; ++i) {
    std::getline(lines, line);
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["row"], i);
    std::getline(csv, line);
    EXPECT_THAT(line, HasSubstr(fmt::format("{},b{},{:.6g},{:.6g},{:.6g},{:.6g},{},", i, i,
                                            json["probabilities"]["no"].get<double>(),
                                            json["probabilities"]["yes"].get<double>(),
                                            json["low"].get<double>(), json["high"].get<double>(),
                                            json["prediction"].get<std::string>())));
    EXPECT_EQ(json["id"], fmt::format("b{}", i));
    EXPECT_THAT(line, HasSubstr(json["out_of_distribution"].get<bool>() ? ",1," : ",0,"));
    EXPECT_EQ(json["unlike"].size(), i == 4 ? 1u : 0u);
    EXPECT_EQ(line.ends_with(",age (far from the mean)"), i == 4);
  }
}

TEST(PredictionFormats, ColumnsAreNamedByTheOutcome) {
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
  EXPECT_EQ(header(LabelKind::number, "sodium"),
            "row,mean,deviation,low,high,outcome_low,outcome_high");
}

TEST(PredictionFormats, EveryClassHasItsInterval) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.data.label = LabelKind::classes;
  recipe.data.label_column = "unit";
  recipe.data.label_positive = {};
  recipe.data.categories = {"died"};
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const PredictedRows rows = predict_file(
      folder.path() / "run", folder.write("new.csv", "age,sodium,died\n25,140,no\n"), "");
  ASSERT_EQ(rows.low.size(), 2u);
  EXPECT_NEAR(rows.low[0], 1 - rows.high[1], 1e-9);  // of two classes
  EXPECT_THAT(predictions_csv(rows),
              HasSubstr("row,p_CCU,p_ICU,low_CCU,high_CCU,low_ICU,high_ICU,prediction,"));
  const auto json = nlohmann::json::parse(predictions_jsonl(rows));
  EXPECT_LT(json["low"]["ICU"], json["probabilities"]["ICU"]);
  EXPECT_GT(json["high"]["ICU"], json["probabilities"]["ICU"]);
}

TEST(PredictionFormats, AnIdIsCarriedThroughAsItIs) {
  const TestRun run;
  const auto file =
      run.write("new.csv", "age,sodium,unit,id\n25,140,ICU,007\n30,141,ICU,\"a, \"\"b\"\"\"\n");
  const PredictedRows rows = predict_file(run.path(), file, "", 2, {.id_column = "id"});
  EXPECT_THAT(predictions_csv(rows), HasSubstr("\n1,007,"));
  EXPECT_THAT(predictions_csv(rows), HasSubstr("\n2,\"a, \"\"b\"\"\","));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"id\":\"007\""));
  EXPECT_THAT(predictions_jsonl(rows), HasSubstr("\"no_interval\":\"2 draws cannot tell"));
}

TEST(PredictionFormats, WhatIsLeftOutHasItsReason) {
  PredictedRows rows;
  rows.left_out = {{7, 9, "p, 1", "age is old, which is no number"}};
  EXPECT_EQ(left_out_csv(rows),
            "row,line,id,reason\n7,9,\"p, 1\",\"age is old, which is no number\"\n");
}

}  // namespace
}  // namespace fedep
