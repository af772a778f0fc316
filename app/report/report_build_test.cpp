#include "app/report/report_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/read_recipe.h"
#include "fedep/inference/method.h"

namespace fedep {
namespace {

using testing::ElementsAre;

// A run whose accuracy after round i + 1 is `accuracy(i)`.
template <class Accuracy>
RunRecord run_of(std::string name, std::uint64_t seed, int rounds, const Accuracy& accuracy,
                 const std::string& head = "") {
  RunRecord run;
  run.name = std::move(name);
  run.recipe = parse_recipe(head + fmt::format(R"(
[data]
name = "synthetic"
[[phase]]
algorithm = "fed_avg"
rounds = {}
)",
                                               rounds));
  run.recipe.seed = seed;
  for (int i = 0; i < rounds; ++i) {
    run.history.rounds.push_back(record_of(i, "fed_avg", {}, 1, {{"accuracy", accuracy(i)}}));
  }
  return run;
}

double rising(int i) { return i < 20 ? 0.5 : 0.62; }

TEST(RunTables, HaveRoundsToThresholdsThatAreReachedAndTheBestMeans) {
  const std::vector<ReportTable> tables = run_tables(std::vector{run_of("a", 1, 40, rising)});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].title, "Accuracy");
  EXPECT_THAT(tables[0].columns, ElementsAre("run", "rounds to 55 %", "rounds to 60 %",
                                             "best over 10, %", "best over 100, %", "last, %"));
  // The mean of 10 rounds passes 0.55 with the fifth round at 0.62: (5·0.5 + 5·0.62)/10 = 0.56; and
  // 0.6 with the ninth: (0.5 + 9·0.62)/10 = 0.608.
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("a", "25", "29", "62.0", "–", "62.0")));
}

TEST(RunTables, AverageOverSeedsAndCountThoseThatReachAThreshold) {
  const auto low = [](int) { return 0.57; };
  const auto high = [](int) { return 0.61; };
  const std::vector<ReportTable> tables =
      run_tables(std::vector{run_of("a1", 1, 40, low), run_of("a2", 2, 40, high)});
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("a", "10 ± 0", "10 (1 of 2 seeds)",
                                                      "59.0 ± 2.8", "–", "59.0 ± 2.8")));
}

TEST(RunTables, SetThePapersRowsBesideThePapersNumbers) {
  const std::string head = "table = \"table2\"\nrow = \"fed_ep_i\"\n";
  const std::vector<ReportTable> tables = run_tables(std::vector{run_of(
      "a", 1, 1500, [](int) { return 0.5; }, head)});
  ASSERT_EQ(tables.size(), 2u);  // Table 5 is read off the same runs
  EXPECT_EQ(tables[0].title, "table2: CIFAR-100");
  EXPECT_THAT(tables[0].rows[1],
              ElementsAre("", "accuracy by 1500R, %", "50.7 ± 0.4", "50.0", "-0.7", ""));
  EXPECT_EQ(tables[1].title, "table5: CIFAR-100, calibration");
}

TEST(RunTables, SayHowLongAPapersRowTookWhereAndWhenAndWhatWasRefused) {
  RunRecord run =
      run_of("a", 1, 40, rising, "table = \"table2\"\nrow = \"fed_ep_i\"\n");  // 1 s a round
  run.history.header = RunHeader{.device = "cpu: a CPU, 2 threads"};
  run.date = "2026-01-31T12:00:00Z";
  run.history.rounds[7].outside_grid = 2;
  EXPECT_EQ(run_tables(std::vector{run})[0].rows[0].back(),
            "1 seed, 40 rounds; 40 s; cpu: a CPU, 2 threads, 2026-01-31; rounds with refused "
            "answers: 1");
}

TEST(RunTables, ShowARunAsTheRowOfAnotherTableThatItStandsInFor) {
  const std::vector runs{run_of("a", 1, 40, rising, "table = \"table2\"\nrow = \"fed_ep_i\"\n")};
  const std::vector<RowName> rows{{"table8", "fed_ep_i_alpha_5e-2"}};
  const std::vector<ReportTable> tables = run_tables(runs, rows);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].title, "table8: CIFAR-100, hyperparameters");
  EXPECT_EQ(tables[0].rows[0][0], "FedEP (I), alpha 5e-2");
}

TEST(RunTables, OfLossesTakeTheSmallest) {
  RunRecord run = run_of("toy", 1, 12, rising);
  for (RoundRecord& round : run.history.rounds) {
    round.scores = {{"distance", round.round < 2 ? 1.0 : 0.25}};
  }
  const std::vector<ReportTable> tables = run_tables(std::vector{run});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_THAT(tables[0].columns, ElementsAre("run", "best over 10", "best over 100", "last"));
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("toy", "0.2500", "–", "0.2500")));
}

TEST(RunTables, OfNothingAreNone) {
  EXPECT_TRUE(run_tables({}).empty());
  RunRecord empty = run_of("a", 1, 4, rising);
  empty.history.rounds.clear();
  EXPECT_TRUE(run_tables(std::vector{empty}).empty());
}

TEST(ResultsTables, HaveTheRowsThatThePaperDoesNot) {
  const Result result{.table = "table3",
                      .row = "titles_fed_avg",
                      .seed = 1,
                      .rounds = 500,
                      .metrics = {{"precision", 0.5}},
                      .seconds = 1,
                      .device = {},
                      .date = {},
                      .version = {}};
  const std::vector<ReportTable> tables = results_tables(std::vector{result});
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].title, "table3: StackOverflow");
  EXPECT_EQ(tables[1].title, "table3: StackOverflow, ours alone");
  EXPECT_THAT(tables[1].rows, ElementsAre(ElementsAre("titles_fed_avg", "50.00", "–", "–", "–",
                                                      "1 seed, 500 rounds; 1.0 s")));
}

TEST(BuildReport, HasATitleForEveryAlgorithmAndEveryMethod) {
  const Json titles = build_report({}, {})["titles"];
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(titles[std::string(algorithm.name)], algorithm.title);
  }
  for (const Method& method : methods()) {
    EXPECT_EQ(titles[std::string(method.name)], method.title);
  }
}

TEST(BuildReport, AddsTheTablesOfKeptResults) {
  const Result result{.table = "table2",
                      .row = "fed_avg",
                      .seed = 1,
                      .rounds = 1500,
                      .metrics = {{"accuracy_1000", 0.447}},
                      .seconds = 1,
                      .device = {},
                      .date = {},
                      .version = {}};
  const Json data = build_report({}, {.results = {result}});
  ASSERT_EQ(data["tables"].size(), 1u);
  EXPECT_EQ(data["tables"][0]["columns"],
            Json({"row", "measure", "paper", "ours", "difference", "runs"}));
  EXPECT_EQ(data["tables"][0]["rows"].size(), 40u);  // ten rows of four measures, run or not
}

}  // namespace
}  // namespace fedep
