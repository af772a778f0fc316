#include "app/sweep/sweep_table.h"

#include <cmath>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedep {
namespace {

using testing::HasSubstr;

std::vector<SweptCell> two_cells() {
  SweptCell slow{{{"client.epochs=1"}}, {}}, fast{{{"client.epochs=5"}}, {}};
  slow.runs = {{1, "a/seed-1", {{"accuracy", 0.5}, {"nll", 1.0}}},
               {2, "a/seed-2", {{"accuracy", 0.7}, {"nll", NAN}}}};
  fast.runs = {{1, "b/seed-1", {{"accuracy", 0.8}}}, {2, "b/seed-2", {{"accuracy", 0.8}}}};
  fast.runs[1].verdict.trust = Trust::none;
  return {slow, fast};
}

TEST(SweepTable, HasMeanAndDeviationOverSeeds) {
  const std::string text = sweep_text(two_cells());
  EXPECT_THAT(text, HasSubstr("client.epochs=1    0.6000 ± 0.1414"));
  EXPECT_THAT(text, HasSubstr("client.epochs=5 *  0.8000 ± 0.0000"));
}

TEST(SweepTable, SaysWhatIsMissingAndNotToBeTrusted) {
  const std::string text = sweep_text(two_cells());
  EXPECT_THAT(text, HasSubstr("1.0000 (1 of 2 seeds)"));
  EXPECT_THAT(text, HasSubstr("2, 1 not to be trusted"));
}

TEST(SweepTable, DoubtsACellInEveryBlock) {
  std::vector<SweptCell> cells = two_cells();
  for (SweptCell& cell : cells) {
    for (SweptRun& run : cell.runs) {
      for (int i = 0; i < 20; ++i) run.scores.emplace_back("score_" + std::to_string(i), 0.5);
    }
  }
  const std::string text = sweep_text(cells);
  std::size_t sure = 0, doubted = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    sure += line.starts_with("client.epochs=1  ");
    doubted += line.starts_with("client.epochs=5 *  ");
  }
  EXPECT_GT(doubted, 1u);
  EXPECT_EQ(sure, doubted);
  EXPECT_TRUE(text.ends_with("\n* has runs that are not to be trusted\n"));
  cells.pop_back();
  EXPECT_THAT(sweep_text(cells), testing::Not(HasSubstr("*")));
}

TEST(SweepTable, AgreesWithItsJson) {
  const std::vector<GridKey> grid{{"client.epochs", {"1", "5"}}};
  const Json json = sweep_json("a.toml", grid, two_cells());
  EXPECT_EQ(json["seeds"], (Json{1, 2}));
  EXPECT_EQ(json["cells"][0]["settings"]["client.epochs"], "1");
  EXPECT_NEAR(json["cells"][0]["scores"]["accuracy"]["mean"].get<double>(), 0.6, 1e-12);
  EXPECT_NEAR(json["cells"][0]["scores"]["accuracy"]["sd"].get<double>(), std::sqrt(0.02), 1e-12);
  EXPECT_EQ(json["cells"][0]["scores"]["nll"]["seeds"], 1);
  EXPECT_TRUE(json["cells"][0]["scores"]["nll"]["sd"].is_null());
  EXPECT_TRUE(json["cells"][1]["scores"]["nll"]["mean"].is_null());
  EXPECT_EQ(json["cells"][1]["runs"][1]["trusted"], false);
}

}  // namespace
}  // namespace fedep
