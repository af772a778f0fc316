#include "app/reproduce/table_metrics.h"

#include <cmath>
#include <functional>
#include <map>

#include <gtest/gtest.h>

namespace fedep {
namespace {

struct LogOptions {
  int rounds = 1500;
  int every = 1;
  bool ended = true;
};

// A log whose accuracy after round r is accuracy(r).
std::vector<Json> log_of(const LogOptions& options, const std::function<double(int)>& accuracy) {
  std::vector<Json> log{
      Json{{"kind", "run"}, {"version", "0.1.0"}, {"device", "cpu: c, 1 thread"}}};
  for (int r = 1; r <= options.rounds; ++r) {
    Json line{{"kind", "round"}, {"round", r - 1}, {"seconds", 0.5}, {"train_loss", 1.0}};
    if (r % options.every == 0 || r == options.rounds) {
      const double value = accuracy(r);
      line["accuracy"] = std::isnan(value) ? Json(nullptr) : Json(value);
      line["nll"] = 2.0;
    }
    log.push_back(std::move(line));
  }
  if (options.ended) log.push_back(Json{{"kind", "end"}, {"rounds", options.rounds}});
  return log;
}

std::map<std::string, double> measured(std::string_view table, const std::vector<Json>& log,
                                       int every = 1) {
  const Metrics metrics = table_metrics(*find_paper_table(table), log, every);
  return {metrics.begin(), metrics.end()};
}

double line(int r) { return r / 2000.0; }

TEST(TableMetrics, OfAStraightLineAreItsMeansOverTheWindow) {
  auto table2 = measured("table2", log_of({}, line));
  // The best 100-round mean is the last one: the mean of rounds 901..1000 is 950.5.
  EXPECT_NEAR(table2["accuracy_1000"], 950.5 / 2000, 1e-12);
  EXPECT_NEAR(table2["accuracy_1500"], 1450.5 / 2000, 1e-12);
  // The 10-round mean at round r is r - 4.5, and 0.45 is round 900.
  EXPECT_EQ(table2["rounds_to_45"], 905);
  EXPECT_EQ(table2["rounds_to_50"], 1005);
}

TEST(TableMetrics, AreNotThereWhereNothingWasReachedOrPlayed) {
  auto flat = measured("table2", log_of({}, [](int) { return 0.46; }));
  EXPECT_EQ(flat["rounds_to_45"], 10);
  EXPECT_TRUE(std::isnan(flat["rounds_to_50"]));
  auto shorter = measured("table2", log_of({.rounds = 1000}, line));
  EXPECT_FALSE(std::isnan(shorter["accuracy_1000"]));
  EXPECT_TRUE(std::isnan(shorter["accuracy_1500"]));
  auto nothing = measured("table2", {});
  for (const auto& [name, value] : nothing) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(TableMetrics, OfSparseEvaluationsCountWindowsInRounds) {
  auto table2 = measured("table2", log_of({.every = 10}, line), 10);
  // Ten points, 1410, 1420, …, 1500: their mean is 1455.
  EXPECT_NEAR(table2["accuracy_1500"], 1455.0 / 2000, 1e-12);
  EXPECT_NEAR(table2["accuracy_1000"], 955.0 / 2000, 1e-12);
  EXPECT_EQ(table2["rounds_to_45"], 900);  // a window of one point
}

TEST(TableMetrics, LeaveTheLastRoundsExtraEvaluationToTheLastValue) {
  const auto log =
      log_of({.rounds = 1505, .every = 10}, [](int r) { return r > 1500 ? 0.9 : 0.3; });
  EXPECT_EQ(curve_of(log, "accuracy", 10).size(), 150u);
  auto figure4 = measured("figure4", log, 10);
  EXPECT_NEAR(figure4["accuracy_1500"], 0.3, 1e-12);
  EXPECT_EQ(figure4["accuracy_final"], 0.9);
}

TEST(TableMetrics, WithoutEvaluationsButTheLastHaveOnlyThat) {
  auto figure4 = measured("figure4", log_of({.every = 100000}, line), 0);
  EXPECT_TRUE(std::isnan(figure4["accuracy_1500"]));
  EXPECT_EQ(figure4["accuracy_final"], 0.75);
}

TEST(TableMetrics, OfARunThatWentOnWithMoreFrequentScoresAreOnlyTheLast) {
  std::vector<Json> log = log_of({}, line);
  for (Json& entry : log) {
    // Every tenth round until 600, every round from there on.
    const bool keeps = entry["kind"] != "round" || entry["round"] >= 600 ||
                       (entry["round"].get<int>() + 1) % 10 == 0;
    if (!keeps) entry.erase("accuracy"), entry.erase("nll");
  }
  EXPECT_FALSE(is_scored_every(log, 1));
  for (const auto& [name, value] : measured("table2", log)) {
    EXPECT_TRUE(std::isnan(value)) << name;
  }
  auto figure4 = measured("figure4", log);
  EXPECT_TRUE(std::isnan(figure4["accuracy_1500"]));
  EXPECT_EQ(figure4["accuracy_final"], 0.75);
}

TEST(TableMetrics, OfARunThatWentOnWithLessFrequentScoresAreThoseOfTheRarerOnes) {
  std::vector<Json> log = log_of({}, line);
  for (Json& entry : log) {
    const bool keeps = entry["kind"] != "round" || entry["round"] < 600 ||
                       (entry["round"].get<int>() + 1) % 10 == 0;
    if (!keeps) entry.erase("accuracy"), entry.erase("nll");
  }
  EXPECT_TRUE(is_scored_every(log, 10));
  EXPECT_EQ(measured("table2", log, 10), measured("table2", log_of({.every = 10}, line), 10));
}

TEST(TableMetrics, OfTable3EndWithAShorterRun) {
  std::vector<Json> log = log_of({.rounds = 300}, line);
  for (Json& entry : log) {
    if (entry["kind"] == "round") entry["micro_f1"] = entry["round"].get<int>() / 1000.0;
  }
  auto table3 = measured("table3", log);
  EXPECT_NEAR(table3["micro_f1"], 249.5 / 1000, 1e-12);
  EXPECT_TRUE(std::isnan(table3["precision"]));
}

TEST(TableMetrics, OfTable5AreTheLastRounds) {
  std::vector<Json> log = log_of({.rounds = 5}, line);
  log[5]["ece"] = 0.05;
  log[5]["ece_marginal"] = nullptr;
  log[4]["accuracy_marginal"] = 0.4;
  auto table5 = measured("table5", log);
  EXPECT_EQ(table5["accuracy"], 5 / 2000.0);
  EXPECT_EQ(table5["ece"], 0.05);
  EXPECT_TRUE(std::isnan(table5["ece_marginal"]));
  EXPECT_TRUE(std::isnan(table5["accuracy_marginal"]));
}

TEST(LastMetrics, AreTheScoresOfTheLastRound) {
  EXPECT_EQ(last_metrics(log_of({.rounds = 3}, line)),
            (Metrics{{"accuracy", 3 / 2000.0}, {"nll", 2.0}}));
  EXPECT_EQ(last_metrics({}), Metrics{});
}

TEST(RunSummary, AddsUpSecondsAndTellsAnUnfinishedRun) {
  std::vector<Json> log = log_of({.rounds = 4}, line);
  log[2]["outside_grid"] = 5;
  const RunSummary whole = summary_of(log);
  EXPECT_EQ(whole.rounds, 4);
  EXPECT_EQ(whole.seconds, 2.0);
  EXPECT_EQ(whole.refused_rounds, 1);
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(whole.device, "cpu: c, 1 thread");
  EXPECT_FALSE(summary_of(log_of({.rounds = 4, .ended = false}, line)).finished);
  EXPECT_FALSE(summary_of({}).finished);
}

}  // namespace
}  // namespace fedep
