#include "app/reproduce/table_metrics.h"

#include <cmath>
#include <functional>
#include <map>

#include <gtest/gtest.h>

namespace fedep {
namespace {

struct HistoryOptions {
  int rounds = 1500;
  int every = 1;
  bool ended = true;
};

// A history whose accuracy after round r is accuracy(r).
History history_of(const HistoryOptions& options, const std::function<double(int)>& accuracy) {
  History history;
  history.header = RunHeader{.version = "0.1.0", .device = "cpu: c, 1 thread"};
  for (int r = 1; r <= options.rounds; ++r) {
    RoundRecord round{.round = r - 1, .seconds = 0.5, .train_loss = 1};
    if (r % options.every == 0 || r == options.rounds) {
      round.scores = {{"accuracy", accuracy(r)}, {"nll", 2.0}};
    }
    history.rounds.push_back(std::move(round));
  }
  if (options.ended) history.end = {.rounds = options.rounds};
  return history;
}

std::vector<RoundRecord> rounds_of(const HistoryOptions& options,
                                   const std::function<double(int)>& accuracy) {
  return history_of(options, accuracy).rounds;
}

std::map<std::string, double> measured(std::string_view table,
                                       const std::vector<RoundRecord>& rounds, int every = 1) {
  const Metrics metrics = table_metrics(*find_paper_table(table), rounds, every);
  return {metrics.begin(), metrics.end()};
}

double line(int r) { return r / 2000.0; }

TEST(TableMetrics, OfAStraightLineAreItsMeansOverTheWindow) {
  auto table2 = measured("table2", rounds_of({}, line));
  // The best 100-round mean is the last one: the mean of rounds 901..1000 is 950.5.
  EXPECT_NEAR(table2["accuracy_1000"], 950.5 / 2000, 1e-12);
  EXPECT_NEAR(table2["accuracy_1500"], 1450.5 / 2000, 1e-12);
  // The 10-round mean at round r is r - 4.5, and 0.45 is round 900.
  EXPECT_EQ(table2["rounds_to_45"], 905);
  EXPECT_EQ(table2["rounds_to_50"], 1005);
}

TEST(TableMetrics, OfAnAverageAreMeansOverTenRoundsAtARound) {
  const auto rounds = [](int count) {
    auto out = rounds_of({.rounds = count}, line);
    for (RoundRecord& round : out) {
      round.scores.emplace_back("accuracy_average", line(int(round.round) + 401));
    }
    return out;
  };
  auto ahead = measured("ahead", rounds(620));
  // Rounds 576 to 585, whose mean is 580.5, and 400 more.
  EXPECT_NEAR(ahead["accuracy_average_585"], 980.5 / 2000, 1e-12);
  EXPECT_EQ(ahead["rounds_to_49.5_average"], 595);
  EXPECT_EQ(ahead["rounds_to_50_average"], 605);
  EXPECT_EQ(ahead["accuracy"], 0.31);
  EXPECT_TRUE(std::isnan(measured("ahead", rounds(584))["accuracy_average_585"]));
}

TEST(TableMetrics, AreNotThereWhereNothingWasReachedOrPlayed) {
  auto flat = measured("table2", rounds_of({}, [](int) { return 0.46; }));
  EXPECT_EQ(flat["rounds_to_45"], 10);
  EXPECT_TRUE(std::isnan(flat["rounds_to_50"]));
  auto shorter = measured("table2", rounds_of({.rounds = 1000}, line));
  EXPECT_FALSE(std::isnan(shorter["accuracy_1000"]));
  EXPECT_TRUE(std::isnan(shorter["accuracy_1500"]));
  auto nothing = measured("table2", {});
  for (const auto& [name, value] : nothing) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(TableMetrics, OfSparseEvaluationsCountWindowsInRounds) {
  auto table2 = measured("table2", rounds_of({.every = 10}, line), 10);
  // Ten points, 1410, 1420, …, 1500: their mean is 1455.
  EXPECT_NEAR(table2["accuracy_1500"], 1455.0 / 2000, 1e-12);
  EXPECT_NEAR(table2["accuracy_1000"], 955.0 / 2000, 1e-12);
  EXPECT_EQ(table2["rounds_to_45"], 900);  // a window of one point
}

TEST(TableMetrics, LeaveTheLastRoundsExtraEvaluationToTheLastValue) {
  const auto rounds =
      rounds_of({.rounds = 1505, .every = 10}, [](int r) { return r > 1500 ? 0.9 : 0.3; });
  EXPECT_EQ(curve_of(rounds, "accuracy", 10).size(), 150u);
  auto figure4 = measured("figure4", rounds, 10);
  EXPECT_NEAR(figure4["accuracy_1500"], 0.3, 1e-12);
  EXPECT_EQ(figure4["accuracy_final"], 0.9);
}

TEST(TableMetrics, WithoutEvaluationsButTheLastHaveOnlyThat) {
  auto figure4 = measured("figure4", rounds_of({.every = 100000}, line), 0);
  EXPECT_TRUE(std::isnan(figure4["accuracy_1500"]));
  EXPECT_EQ(figure4["accuracy_final"], 0.75);
}

TEST(TableMetrics, OfARunThatWentOnWithMoreFrequentScoresAreOnlyTheLast) {
  std::vector<RoundRecord> rounds = rounds_of({}, line);
  for (RoundRecord& round : rounds) {
    // Every tenth round until 600, every round from there on.
    if (round.round < 600 && (round.round + 1) % 10 != 0) round.scores.clear();
  }
  EXPECT_FALSE(is_scored_every(rounds, 1));
  for (const auto& [name, value] : measured("table2", rounds)) {
    EXPECT_TRUE(std::isnan(value)) << name;
  }
  auto figure4 = measured("figure4", rounds);
  EXPECT_TRUE(std::isnan(figure4["accuracy_1500"]));
  EXPECT_EQ(figure4["accuracy_final"], 0.75);
}

TEST(TableMetrics, OfARunThatWentOnWithLessFrequentScoresAreThoseOfTheRarerOnes) {
  std::vector<RoundRecord> rounds = rounds_of({}, line);
  for (RoundRecord& round : rounds) {
    if (round.round >= 600 && (round.round + 1) % 10 != 0) round.scores.clear();
  }
  EXPECT_TRUE(is_scored_every(rounds, 10));
  EXPECT_EQ(measured("table2", rounds, 10), measured("table2", rounds_of({.every = 10}, line), 10));
}

TEST(TableMetrics, OfTable3EndWithAShorterRun) {
  std::vector<RoundRecord> rounds = rounds_of({.rounds = 300}, line);
  for (RoundRecord& round : rounds) {
    round.scores.emplace_back("micro_f1", double(round.round) / 1000.0);
  }
  auto table3 = measured("table3", rounds);
  EXPECT_NEAR(table3["micro_f1"], 249.5 / 1000, 1e-12);
  EXPECT_TRUE(std::isnan(table3["precision"]));
}

TEST(TableMetrics, OfTable5AreTheLastRounds) {
  std::vector<RoundRecord> rounds = rounds_of({.rounds = 5}, line);
  rounds[4].scores.emplace_back("ece", 0.05);
  rounds[4].scores.emplace_back("ece_marginal", NAN);
  rounds[3].scores.emplace_back("accuracy_marginal", 0.4);
  auto table5 = measured("table5", rounds);
  EXPECT_EQ(table5["accuracy"], 5 / 2000.0);
  EXPECT_EQ(table5["ece"], 0.05);
  EXPECT_TRUE(std::isnan(table5["ece_marginal"]));
  EXPECT_TRUE(std::isnan(table5["accuracy_marginal"]));
}

TEST(LastMetrics, AreTheScoresOfTheLastRound) {
  EXPECT_EQ(last_metrics(rounds_of({.rounds = 3}, line)),
            (Metrics{{"accuracy", 3 / 2000.0}, {"nll", 2.0}}));
  EXPECT_EQ(last_metrics({}), Metrics{});
}

TEST(RunSummary, AddsUpSecondsAndTellsAnUnfinishedRun) {
  History history = history_of({.rounds = 4}, line);
  history.rounds[1].outside_grid = 5;
  const RunSummary whole = summary_of(history);
  EXPECT_EQ(whole.rounds, 4);
  EXPECT_EQ(whole.seconds, 2.0);
  EXPECT_EQ(whole.refused_rounds, 1);
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.device, "cpu: c, 1 thread");
  EXPECT_FALSE(summary_of(history_of({.rounds = 4, .ended = false}, line)).finished);
  EXPECT_FALSE(summary_of({}).finished);
}

}  // namespace
}  // namespace fedep
