#include "app/coefficients_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/run_recipe.h"
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
