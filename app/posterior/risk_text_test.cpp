// What `evaluate` says of risks: numbers with their errors, bins, hospitals, and words where there is none.
#include "app/posterior/risk_text.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/evaluate_command.h"
#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RiskText, OfARunHasEveryHospitalAndWhatItCannotTell) {
  const TestRun run;
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {.samples = 20});
  ASSERT_TRUE(report.scores.risk.has_value());
  const RiskReport& risk = *report.scores.marginal_risk;
  EXPECT_EQ(risk.examples, 60);
  EXPECT_EQ(risk.bins.size(), 6u);

  const std::string text = evaluation_text(report, true);
  EXPECT_THAT(text, HasSubstr(fmt::format("{} of 60 examples had the outcome", risk.events)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.3f} ± {:.3f}   ± its standard error", risk.auc,
                                          risk.auc_deviation)));
  EXPECT_THAT(text, HasSubstr("calibration slope"));
  EXPECT_THAT(text, HasSubstr(" predicted  observed  examples\n"));
  // Twenty held-out rows a ward: some have fewer than ten of an outcome.
  EXPECT_THAT(text, HasSubstr("no calibration intercept and slope"));
  EXPECT_THAT(evaluation_text(report, false), Not(HasSubstr("client  examples")));

  const Json json = evaluation_json(report)["risk"];
  EXPECT_EQ(json["marginal"]["auc"], risk.auc);
  EXPECT_EQ(json["marginal"]["auc_se"], risk.auc_deviation);
  EXPECT_EQ(json["marginal"]["slope"], risk.calibration.slope);
  EXPECT_EQ(json["marginal"]["intercept_se"], risk.calibration.intercept_deviation);
  EXPECT_EQ(json["point"]["bins"].size(), 6u);
  ASSERT_EQ(json["clients"].size(), 3u);
  std::int64_t events = 0;
  for (const Json& client : json["clients"]) {
    const Json& own = client["point"];
    events += own["events"].get<std::int64_t>();
    EXPECT_EQ(own["slope"].is_null(), !own["missing"].empty()) << own.dump();
  }
  EXPECT_EQ(events, risk.events);
}

TEST(RiskText, TheEndOfARunHasTheRisksAtItsMean) {
  const TestRun run;
  const auto bytes = read_file(run.path() / "evaluation.json");
  const Json kept = Json::parse(reinterpret_cast<const char*>(bytes.data()),
                                reinterpret_cast<const char*>(bytes.data()) + bytes.size());
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {.samples = 0});
  EXPECT_EQ(kept["risk"], risk_json(report.scores));
  EXPECT_FALSE(kept["risk"].contains("marginal"));
}

// What predict writes is after the temperature, so that is told too.
TEST(RiskText, IsOfBothWhereThereIsATemperature) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.data.calibration_fraction = 0.4;
  recipe.evaluate.samples = 8;
  const auto run = folder.path() / "run";
  run_recipe(recipe, {.out = run, .data = folder.path()});
  const auto bytes = read_file(run / "evaluation.json");
  const Json at_end = Json::parse(reinterpret_cast<const char*>(bytes.data()),
                                  reinterpret_cast<const char*>(bytes.data()) + bytes.size());
  const EvaluateReport report = evaluate_run(run, folder.path(), {});
  const Json json = evaluation_json(report);
  const double temperature = read_posterior(run).state.temperatures.point;
  ASSERT_NE(temperature, 1);
  const auto slope = [&](const char* of) { return json["risk"][of]["slope"].get<double>(); };
  // Logits are divided by it.
  EXPECT_NEAR(slope("point_calibrated"), slope("point") * temperature, 1e-4);
  EXPECT_TRUE(json["risk"].contains("marginal_calibrated"));
  EXPECT_TRUE(json["risk"]["clients"][0].contains("marginal_calibrated"));
  EXPECT_EQ(at_end["risk"]["point_calibrated"], json["risk"]["point_calibrated"]);
  EXPECT_NE(json["reliability"]["point_calibrated"], json["reliability"]["point"]);
  EXPECT_NE(json["reliability"]["marginal_calibrated"], json["reliability"]["marginal"]);
  const std::string text = evaluation_text(report, false);
  EXPECT_THAT(text, HasSubstr("averaged over draws, before the temperature"));
  EXPECT_THAT(text, HasSubstr("averaged over draws, after the temperature"));
}

TEST(RiskText, OtherOutcomesHaveNone) {
  const PosteriorEvaluation scores;
  EXPECT_TRUE(risk_json(scores).is_null());
  EXPECT_EQ(risk_text(scores, nullptr, true), "");
}

TEST(RiskText, ANumberThatThereIsNotIsADash) {
  PosteriorEvaluation scores;
  scores.risk = RiskReport{.examples = 3,
                           .events = 1,
                           .auc = 0.5,
                           .auc_deviation = NAN,
                           .calibration = {NAN, NAN, NAN, NAN},
                           .bins = {{0.2, 0.4, 3, 0.3, 1.0 / 3}},
                           .missing = {"no standard error of the AUC: 1 of 3 had the outcome"}};
  const std::string text = risk_text(scores, nullptr, false);
  EXPECT_THAT(text, HasSubstr("auc                               0.500   ±"));
  EXPECT_THAT(text, HasSubstr("calibration slope                     -   1:"));
  EXPECT_THAT(text, HasSubstr("no standard error of the AUC: 1 of 3 had the outcome\n"));
  EXPECT_THAT(text, HasSubstr("     30.0%     33.3%         3\n"));
  const Json json = risk_json(scores);
  EXPECT_TRUE(json["point"]["auc_se"].is_null());
  EXPECT_EQ(json["point"]["missing"].size(), 1u);
}

}  // namespace
}  // namespace fedep
