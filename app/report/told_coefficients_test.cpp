#include "app/report/told_coefficients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run.h"
#include "fedep/config/read_recipe.h"

namespace fedep {
namespace {

using testing::HasSubstr;

std::optional<CoefficientReport> told(const TestRun& run) {
  return told_coefficients(run.path(), read_recipe(run.path() / "recipe.toml"));
}

TEST(ToldCoefficients, HaveTheColumnsNamesAndIntervals) {
  const TestRun run(kFullFedEp);
  const auto report = told(run);
  ASSERT_TRUE(report);
  const ForestFigure* const figure = &report->figure;
  ASSERT_EQ(figure->rows.size(), 3u);  // without the intercept, which compares nothing
  EXPECT_THAT(figure->rows[0].name, HasSubstr("age"));
  EXPECT_THAT(figure->rows[2].name, HasSubstr("unit=CCU vs ICU"));
  EXPECT_EQ(figure->axis, "odds ratio");
  EXPECT_EQ(figure->scale, EffectScale::ratio);
  for (const ForestRow& row : figure->rows) {
    ASSERT_TRUE(row.interval);
    EXPECT_LT(row.interval->first, row.estimate);
    EXPECT_GT(row.interval->second, row.estimate);
  }
  EXPECT_GT(figure->rows[0].interval->first, 0);  // died is likelier the older
}

// Of three wards with as many rows each, and the prior last.
TEST(ToldCoefficients, HaveSharesOfTheInformation) {
  const TestRun run(kFullFedEp);
  const auto report = told(run);
  ASSERT_EQ(report->shares.size(), 4u);
  EXPECT_EQ(report->shares[3].name, "prior");
  double sum = 0;
  for (const CoefficientReport::Share& share : report->shares) sum += share.share;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_GE(report->shares[0].share, report->shares[1].share);
  EXPECT_GE(report->shares[1].share, report->shares[2].share);
  EXPECT_TRUE(report->spreads.empty());
  const TestRun point(kFedAvg);
  EXPECT_TRUE(told(point)->shares.empty());
}

TEST(ToldCoefficients, HaveTheSpreadOfHospitalsIntercepts) {
  TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  run_recipe(parse_recipe(ward_recipe(kFullFedEp) + "[model]\nsite_intercept = true\n"),
             {.out = folder.path() / "run", .data = folder.path()});
  const auto report =
      told_coefficients(folder.path() / "run", read_recipe(folder.path() / "run" / "recipe.toml"));
  ASSERT_EQ(report->spreads.size(), 1u);
  EXPECT_EQ(report->spreads[0].name, "hospitals' intercepts");
  EXPECT_GT(report->spreads[0].estimate, 0);
}

TEST(ToldCoefficients, HaveNoIntervalsWhereNoneAreTold) {
  const TestRun point(kFedAvg);
  const auto estimates = told(point);
  ASSERT_TRUE(estimates);
  for (const ForestRow& row : estimates->figure.rows) EXPECT_FALSE(row.interval);
  const TestRun set(
      "algorithm = \"fed_ep\"\nfactors = \"flat\"\n[phase.inference]\nname = "
      "\"scaled_identity\"\n");
  const auto withheld = told(set);
  ASSERT_TRUE(withheld);
  for (const ForestRow& row : withheld->figure.rows) EXPECT_FALSE(row.interval);
  EXPECT_THAT(withheld->figure.caption, HasSubstr("precisions are set"));
}

TEST(ToldCoefficients, AreNothingWhereThereAreNone) {
  const TestRun run(kFedAvg);
  Recipe other = read_recipe(run.path() / "recipe.toml");
  other.model.name = "cnn";
  EXPECT_FALSE(told_coefficients(run.path(), other));
  std::filesystem::remove(run.path() / "features.json");
  EXPECT_FALSE(told(run));
}

}  // namespace
}  // namespace fedep
