#include "app/report/told_coefficients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run.h"
#include "fedep/config/read_recipe.h"

namespace fedep {
namespace {

using testing::HasSubstr;

std::optional<ForestFigure> told(const TestRun& run) {
  return told_coefficients(run.path(), read_recipe(run.path() / "recipe.toml"));
}

TEST(ToldCoefficients, HaveTheColumnsNamesAndIntervals) {
  const TestRun run(kFullFedEp);
  const auto figure = told(run);
  ASSERT_TRUE(figure);
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

TEST(ToldCoefficients, HaveNoIntervalsWhereNoneAreTold) {
  const TestRun point(kFedAvg);
  const auto estimates = told(point);
  ASSERT_TRUE(estimates);
  for (const ForestRow& row : estimates->rows) EXPECT_FALSE(row.interval);
  const TestRun set(
      "algorithm = \"fed_ep\"\nfactors = \"flat\"\n[phase.inference]\nname = "
      "\"scaled_identity\"\n");
  const auto withheld = told(set);
  ASSERT_TRUE(withheld);
  for (const ForestRow& row : withheld->rows) EXPECT_FALSE(row.interval);
  EXPECT_THAT(withheld->caption, HasSubstr("precisions are set"));
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
