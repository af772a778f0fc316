#include "app/posterior/coefficients_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/test_run.h"
#include "app/trust.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::Not;

const CoefficientTable kTable{.data = "heart_disease",
                              .algorithm = "fed_ep",
                              .round = 20,
                              .rows = {{"age", 0.5, 0.25}, {"intercept", -1, 0.1}}};

TEST(Coefficients, TheIntervalHolds95PercentOfANormal) {
  const Coefficient standard{"x", 0, 1};
  EXPECT_NEAR(std::erf(standard.high() / std::sqrt(2.0)), 0.95, 1e-12);
  EXPECT_EQ(standard.low(), -standard.high());
}

TEST(Coefficients, TheTableSaysItsUnit) {
  const std::string text = coefficients_text(kTable);
  EXPECT_THAT(text, HasSubstr("log-odds for one standard deviation of the column"));
  EXPECT_THAT(text, HasSubstr("age             0.500     0.250     0.010 to    0.990\n"));
}

TEST(Coefficients, APointEstimateHasNoInterval) {
  CoefficientTable table = kTable;
  for (Coefficient& row : table.rows) row.deviation.reset();
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("95 %")));
  EXPECT_TRUE(nlohmann::json::parse(coefficients_json(table))["coefficients"][0]["sd"].is_null());
}

TEST(Coefficients, JsonHasWhatTheTableHas) {
  const auto json = nlohmann::json::parse(coefficients_json(kTable));
  EXPECT_EQ(json["coefficients"].size(), 2u);
  EXPECT_EQ(json["coefficients"][1]["name"], "intercept");
  EXPECT_DOUBLE_EQ(json["coefficients"][0]["high"], kTable.rows[0].high());
}

TEST(Coefficients, HaveTheNamesThatTheRunWroteDown) {
  const TestRun run;
  const CoefficientTable table = read_coefficients(run.path(), "/nowhere");
  std::vector<std::string> names;
  for (const Coefficient& row : table.rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"age", "sodium", "unit=CCU vs ICU", "intercept"}));
  EXPECT_GT(table.rows[0].mean, 0.5);
  EXPECT_THAT(table.notes, testing::ElementsAre(HasSubstr("the run was not judged: it has 6")));
  EXPECT_THAT(coefficients_text(table), HasSubstr("of the width they should have"));
}

TEST(Coefficients, OfColumnsThatDoNotVaryAreNotMadeUp) {
  const TemporaryFolder folder;
  const auto run = constant_run(folder);
  const CoefficientTable table = read_coefficients(run, "/nowhere");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[2].name, "unit=CCU vs ICU");
  EXPECT_EQ(table.rows[3].name, "intercept");
  EXPECT_THAT(coefficients_text(table), HasSubstr("have no coefficient: year, \"weight, kg\".\n"));
}

TEST(Coefficients, SayWhatIsWrongWithTheRun) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.client.optimizer.lr = 1e24;
  recipe.client.weight_decay = 1e24;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const CoefficientTable table = read_coefficients(folder.path() / "run", "");
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_THAT(coefficients_text(table),
              HasSubstr("Note: the run is not to be trusted: clients' answers were refused in 6 of "
                        "6 rounds"));
}

TEST(Coefficients, OfARunThatIsNotToBeTrustedHaveNoIntervals) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.server.optimizer.lr = 1.5;  // windows of two rounds
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const CoefficientTable table = read_coefficients(folder.path() / "run", "");
  EXPECT_EQ(table.verdict.trust, Trust::none);
  EXPECT_FALSE(table.rows[0].deviation);
  EXPECT_THAT(coefficients_text(table), HasSubstr("There are no intervals: the run is not to be"));
  const auto json = nlohmann::json::parse(coefficients_json(table));
  EXPECT_EQ(json["run"]["trust"], "no");
  EXPECT_TRUE(json["coefficients"][0]["sd"].is_null());
  EXPECT_EQ(exit_code_of(table.verdict), 3);
}

TEST(Coefficients, OfColumnsThatWereNotScaledAreForOneUnit) {
  CoefficientTable table = kTable;
  table.scaled = false;
  EXPECT_THAT(coefficients_text(table), HasSubstr("log-odds for one unit of the column"));
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("centred")));
  EXPECT_THAT(coefficients_json(table), HasSubstr("log-odds per unit"));
}

TEST(Coefficients, OfAnOutcomeThatIsANumberNameTheNoiseTheyTakeForGranted) {
  CoefficientTable table = kTable;
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("model.noise")));
  EXPECT_THAT(coefficients_json(table), Not(HasSubstr("noise")));
  table.likelihood = {TargetKind::real, 2.5};
  EXPECT_THAT(coefficients_text(table),
              HasSubstr("a standard deviation of 2.5 around its prediction (model.noise)"));
  EXPECT_EQ(nlohmann::json::parse(coefficients_json(table))["noise"], 2.5);
}

TEST(Coefficients, DataWithoutNamedColumnsAreRefused) {
  const TemporaryFolder folder;
  const Recipe recipe = parse_recipe(
      "[data]\nname = \"synthetic\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  run_recipe(recipe, {.out = folder.path() / "run", .data = "", .threads = 1, .resume = false});
  EXPECT_THAT(message_of<InputError>([&] { read_coefficients(folder.path() / "run", ""); }),
              HasSubstr("data must be a table"));
}

}  // namespace
}  // namespace fedep
