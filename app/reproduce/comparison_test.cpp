#include "app/reproduce/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/reproduce/test_result.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

TEST(Comparison, ShowsPaperOursAndDifference) {
  const std::vector<Result> results{table2_result(1, 0.502), table2_result(2, 0.504, 1200)};
  const std::string text = comparison("table2", results, true);
  EXPECT_TRUE(has(text, "| row | measure | paper | ours | difference | runs |\n")) << text;
  EXPECT_TRUE(has(text,
                  "| FedEP (I) | accuracy by 1000R, % | 48.7 ± 0.4 | 48.0 ± 0.0 | -0.7 | "
                  "2 seeds, 1500 rounds; 12, 12 s; cpu: a CPU, 2 threads, 2026-01-31 |\n"))
      << text;
  EXPECT_TRUE(has(text, "|  | accuracy by 1500R, % | 50.7 ± 0.4 | 50.3 ± 0.1 | -0.4 |  |\n"))
      << text;
  EXPECT_TRUE(has(text, "| rounds to 45 % | 473 ± 17 | 470 ± 0 | -3 |")) << text;
  EXPECT_TRUE(has(text, "| rounds to 50 % | 1167 ± 107 | 1200 (1 of 2 seeds) | +33 |")) << text;
  EXPECT_FALSE(has(text, "FedAvg"));
}

TEST(Comparison, HasThePapersRowsThatWereNotRun) {
  const std::string text = comparison("table2", {});
  EXPECT_TRUE(has(text, "| FedPA | accuracy by 1000R, % | 45.8 | – | – | not run |\n")) << text;
  EXPECT_TRUE(has(text, "| rounds to 50 % | 1240 ± 133 (4 of 5 seeds) | – | – |")) << text;
  EXPECT_TRUE(has(text, "| rounds to 50 % | 1290 (1 of 5 seeds) | – | – |")) << text;
}

TEST(Comparison, TakesTheLastResultOfASeedAndTheLongestRuns) {
  Result trial = table2_result(3, 0.9);
  trial.rounds = 20;
  const std::vector<Result> results{table2_result(1, 0.1), trial, table2_result(1, 0.507)};
  const std::string text = comparison("table2", results, true);
  EXPECT_TRUE(has(text, "| 50.7 ± 0.4 | 50.7 | +0.0 |")) << text;
  EXPECT_TRUE(has(text, "1 seed, 1500 rounds")) << text;
}

TEST(Comparison, NamesEveryMachineAndTheLatestDate) {
  std::vector<Result> results{table2_result(2, 0.5), table2_result(1, 0.5), table2_result(3, 0.5)};
  results[0].date = "2026-03-01T00:00:00Z";
  results[1].device = "cuda a GPU";
  results[1].seconds = 3;
  const std::string text = comparison("table2", results, true);
  EXPECT_TRUE(has(text,
                  "3 seeds, 1500 rounds; 3.0, 12, 12 s; cuda a GPU; cpu: a CPU, 2 threads, "
                  "2026-03-01 |"))
      << text;
}

TEST(Comparison, SaysInHowManyRoundsAnswersWereRefused) {
  std::vector<Result> results{table2_result(1, 0.5), table2_result(2, 0.5)};
  results[0].refused_rounds = 3;
  results[1].refused_rounds = 4;
  const std::string text = comparison("table2", results, true);
  EXPECT_TRUE(has(text, "2026-01-31; rounds with refused answers: 7 |")) << text;
}

TEST(Comparison, ShowsRowsAndTablesThatThePaperDoesNotHave) {
  const Result own{.table = "hospitals",
                   .row = "fed_ep",
                   .seed = 1,
                   .rounds = 20,
                   .metrics = {{"auc", 0.91234}, {"nll", kNan}},
                   .seconds = 1,
                   .device = "",
                   .date = "",
                   .version = ""};
  Result other = own;
  other.row = "fed_avg";
  other.metrics = {{"auc", 0.8}, {"rmse", 2.0}};
  EXPECT_EQ(comparison("hospitals", std::vector{own, other}),
            "| row | auc | nll | rmse | runs |\n|---|---|---|---|---|\n"
            "| fed_avg | 0.8000 | – | 2.0000 | 1 seed, 20 rounds; 1.0 s |\n"
            "| fed_ep | 0.9123 | – | – | 1 seed, 20 rounds; 1.0 s |\n");
  EXPECT_EQ(comparison("figure4", {}), "Not run.\n");
  Result extra = table2_result(1, 0.4);
  extra.row = "fed_ep_x";
  const std::string both = comparison("table2", std::vector{extra});
  EXPECT_TRUE(has(both, "| FedEP (I) | accuracy by 1000R, % | 48.7 ± 0.4 | – | – | not run |"));
  EXPECT_TRUE(has(both, "Ours alone:\n\n| row | accuracy by 1000R, % |")) << both;
  EXPECT_TRUE(has(both, "| fed_ep_x | 48.0")) << both;
  EXPECT_EQ(comparison("table2", std::vector{extra}, true).find("| row | accuracy"), 0u);
}

TEST(Comparison, PrintsLossesAsTheyAreAndFractionsInPercent) {
  const Result own{.table = "femnist",
                   .row = "fed_avg",
                   .seed = 1,
                   .rounds = 500,
                   .metrics = {{"accuracy_300", 0.891}, {"nll", 0.40734}, {"ece", 0.0324}},
                   .seconds = 1,
                   .device = "",
                   .date = "",
                   .version = ""};
  const std::string text = comparison("femnist", std::vector{own});
  EXPECT_TRUE(has(text, "| NLL, last round |")) << text;
  EXPECT_TRUE(has(text, "| 89.1 | – | 0.407 | 3.2 |")) << text;
}

TEST(Comparison, OrdersRowsByTheNumbersInTheirNames) {
  std::vector<Result> results;
  for (const auto* row :
       {"epochs_10", "epochs_9", "epochs_1", "epochs_2_b", "epochs", "epochs_2"}) {
    results.push_back(table2_result(1, 0.5));
    results.back().table = "figure6";
    results.back().row = row;
  }
  const std::string text = comparison("figure6", results);
  std::size_t place = 0;
  for (const auto* row :
       {"epochs", "epochs_1", "epochs_2", "epochs_2_b", "epochs_9", "epochs_10"}) {
    const std::size_t found = text.find(fmt::format("| {} |", row));
    ASSERT_NE(found, text.npos) << row;
    EXPECT_GT(found, place) << row;
    place = found;
  }
}

TEST(WithTables, ReplacesOnlyWhatStandsBetweenTheMarks) {
  const std::vector<Result> results{table2_result(1, 0.5)};
  const std::string text =
      "before\n<!-- table2 -->\nold\n<!-- end -->\nbetween <!-- a note -->\n"
      "<!-- hospitals -->\nkept, for there are no results\n<!-- end -->\nafter\n";
  const std::string once = with_tables(text, results, "README.md");
  EXPECT_TRUE(once.starts_with("before\n<!-- table2 -->\n\n| row |")) << once;
  EXPECT_TRUE(
      once.ends_with("|\n\n<!-- end -->\nbetween <!-- a note -->\n<!-- hospitals -->\nkept, "
                     "for there are no results\n<!-- end -->\nafter\n"))
      << once;
  EXPECT_FALSE(has(once, "old"));
  EXPECT_EQ(with_tables(once, results, "README.md"), once);  // writing again changes nothing
}

TEST(WithTables, RefusesAPlaceWithoutItsEnd) {
  EXPECT_THROW(with_tables("<!-- table2 -->\n", {}, "README.md"), InputError);
  EXPECT_THROW(with_tables("<!-- table2 -->\n<!-- table3 -->\n<!-- end -->\n", {}, "README.md"),
               InputError);
  EXPECT_EQ(with_tables("no marks", {}, "README.md"), "no marks");
  EXPECT_EQ(with_tables("", {}, "README.md"), "");
}

}  // namespace
}  // namespace fedep
