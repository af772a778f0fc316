#include "fedep/page/report/evaluation_part.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

Json part_of(const char* evaluation) { return evaluation_part(Json::parse(evaluation)); }

TEST(EvaluationPart, HasRisksAndOfThemOnlyWhatThePageExpects) {
  EXPECT_TRUE(evaluation_part(nullptr)["risk"].is_null());
  const Json risk = part_of(R"({"risk": {"point": {"examples": 30, "events": 4, "auc": 0.8,
      "auc_se": null, "slope": "steep", "bins": [{"risk": 0.1, "observed": 0.2, "examples": 30}, 7,
      {"risk": 0.1}], "missing": ["few", 3]}, "marginal": [], "point_calibrated": {"examples": 30, "events": 4, "auc": 0.7},
      "clients": [{"client": "A",
      "point": {"examples": 3, "events": 0}}, {"client": 7}, null, {"client": "B"}]}})")["risk"];
  EXPECT_EQ(risk["point"]["auc"], 0.8);
  EXPECT_TRUE(risk["point"]["auc_se"].is_null());
  EXPECT_TRUE(risk["point"]["slope"].is_null());
  EXPECT_EQ(risk["point"]["bins"].size(), 1u);
  EXPECT_EQ(risk["point"]["missing"], Json({"few"}));
  EXPECT_TRUE(risk["marginal"].is_null());
  EXPECT_EQ(risk["point_calibrated"]["auc"], 0.7);
  ASSERT_EQ(risk["clients"].size(), 1u);
  EXPECT_EQ(risk["clients"][0]["client"], "A");
  for (const char* nothing : {R"({"risk": 3})", R"({"risk": {"point": {"examples": 1}}})"}) {
    EXPECT_TRUE(part_of(nothing)["risk"].is_null());
  }
}

TEST(EvaluationPart, HasOfBinsAndClientsOnlyWhatThePageExpects) {
  const Json json = part_of(
      R"({"reliability": {"point": [null, 7, {"weight": "x"}], "marginal": 3},
    "per_client": [null, {"client": {}, "examples": [], "metrics": {"accuracy": 0.5, "nll": "x"}}]})");
  EXPECT_EQ(json["reliability"]["point"].size(), 3u);
  for (const Json& bin : json["reliability"]["point"]) EXPECT_TRUE(bin.at("weight").is_null());
  EXPECT_TRUE(json["reliability"]["marginal"].is_null());
  EXPECT_TRUE(json["per_client"][0]["client"].is_string());
  EXPECT_EQ(json["per_client"][1]["metrics"], Json({{"accuracy", 0.5}}));
  for (const char* text : {"[]", "3", R"({"reliability": [], "per_client": {}})"}) {
    EXPECT_TRUE(part_of(text)["reliability"].is_null());
    EXPECT_TRUE(part_of(text)["per_client"].is_null());
  }
}

TEST(EvaluationPart, HasNothingOfTheServersAverage) {
  EXPECT_TRUE(
      part_of(R"({"average": true, "reliability": {"point": []}})")["reliability"].is_null());
  EXPECT_FALSE(
      part_of(R"({"average": false, "reliability": {"point": []}})")["reliability"].is_null());
}

TEST(EvaluationPart, HasCurvesThatAreAsLongAsTheirCoverages) {
  const Json json = part_of(R"({"selective": {"coverage": [0.5, 1], "point": {"risk": [0.1, 0.2],
      "area": 0.15, "entropy": 1}, "marginal": {"risk": [0.1]}, "mutual_information": {"risk": [0.1, null]},
      "point_calibrated": {"risk": [0.05, 0.2], "area": null}, "other": {"risk": [1, 1]}}})");
  const Json& curves = json["selective"]["curves"];
  EXPECT_EQ(json["selective"]["coverage"], Json({0.5, 1}));
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves["point"]["risk"], Json({0.1, 0.2}));
  EXPECT_EQ(curves["point"]["area"], 0.15);
  EXPECT_TRUE(curves["point_calibrated"]["area"].is_null());
  for (const char* nothing : {R"({"selective": 3})", R"({"selective": {"coverage": []}})",
                              R"({"selective": {"coverage": ["a"], "point": {"risk": [0.1]}}})",
                              R"({"selective": {"coverage": [0.5], "point": []}})"}) {
    EXPECT_TRUE(part_of(nothing)["selective"].is_null()) << nothing;
  }
}

TEST(EvaluationPart, HasDetectionsThatHaveANumber) {
  const Json json = part_of(R"({"detection": [{"unlike": "<b>noise</b>", "unlike_examples": 10,
      "examples": 90, "point": {"entropy": {"auroc": 0.7, "se": 0.1}, "energy": {"auroc": null},
      "beauty": {"auroc": 1}}, "marginal": {"mutual_information": {"auroc": 0.9}}}, 7, null,
      {"unlike": 3, "point": {"entropy": 0.5}}]})");
  ASSERT_EQ(json["detection"].size(), 1u);
  const Json& set = json["detection"][0];
  EXPECT_EQ(set["unlike"], "<b>noise</b>");
  EXPECT_EQ(set["unlike_examples"], 10);
  EXPECT_EQ(set["scores"]["point"].size(), 1u);
  EXPECT_EQ(set["scores"]["point"]["entropy"]["auroc"], 0.7);
  EXPECT_TRUE(set["scores"]["marginal"]["mutual_information"]["se"].is_null());
  EXPECT_TRUE(part_of(R"({"detection": {}})")["detection"].is_null());
}

}  // namespace
}  // namespace fedep
