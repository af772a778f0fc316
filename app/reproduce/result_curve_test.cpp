#include "app/reproduce/result_curve.h"

#include <cmath>

#include <gtest/gtest.h>

#include "app/reproduce/test_result.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/page/report/run_curves.h"

namespace fedep {
namespace {

// Accuracy i/100 after round i; the marginal one every 100 rounds.
std::vector<RoundRecord> played(int rounds) {
  std::vector<RoundRecord> all;
  for (int i = 0; i < rounds; ++i) {
    RoundRecord round{.round = i, .train_loss = 1, .scores = {{"accuracy", i / 100.0}}};
    if ((i + 1) % 100 == 0) round.scores.emplace_back("ece_marginal", 0.25);
    all.push_back(std::move(round));
  }
  return all;
}

Recipe two_phases(int first, int second) {
  Recipe recipe;
  recipe.phases.emplace_back().rounds = first;
  recipe.phases.emplace_back().rounds = second;
  return recipe;
}

TEST(ResultCurve, HasTheMeanOfEveryTenRounds) {
  const ResultCurve curve = curve_of_run(played(25), two_phases(4, 21), {"accuracy", "ece"});
  EXPECT_EQ(curve.switches, std::vector<std::int64_t>{4});
  ASSERT_EQ(curve.scores.size(), 1u);  // nothing was said of ece
  EXPECT_EQ(curve.scores[0].first, "accuracy");
  const std::vector<double> means{0.045, 0.145, 0.22};  // 0…9, 10…19, 20…24
  EXPECT_EQ(curve.scores[0].second, means);
}

TEST(ResultCurve, OfASeldomScoreHasNothingBetween) {
  const ResultCurve curve = curve_of_run(played(200), two_phases(100, 100), {"ece_marginal"});
  ASSERT_EQ(curve.scores.size(), 1u);
  const std::vector<double>& means = curve.scores[0].second;
  ASSERT_EQ(means.size(), 20u);
  for (std::size_t i = 0; i < means.size(); ++i) {
    EXPECT_EQ(std::isfinite(means[i]), i == 9 || i == 19) << i;
  }
}

TEST(ResultCurve, HoldsWhatTablesReadOffTheRun) {
  const std::vector<RoundRecord> rounds = played(3);
  const std::vector<std::string> table2{"accuracy", "accuracy_marginal", "ece", "ece_marginal"};
  EXPECT_EQ(curve_scores("table2", rounds), table2);  // Table 5's too
  EXPECT_TRUE(curve_scores("table5", rounds).empty());
  EXPECT_EQ(curve_scores("femnist", rounds), (std::vector<std::string>{"accuracy", "nll", "ece"}));
  EXPECT_EQ(curve_scores("mine", rounds), std::vector<std::string>{"accuracy"});
}

TEST(PublishedRun, IsDrawnAsTheRunItselfInItsTenRoundMeans) {
  const std::vector<RoundRecord> rounds = played(40);
  Result result = table2_result(1, 0.5);
  result.rounds = 40;
  result.curve = curve_of_run(rounds, two_phases(4, 36), {"accuracy"});
  const RunRecord published = published_run(result);
  RunRecord own;
  own.recipe = two_phases(4, 36);
  own.history.rounds = rounds;
  own.recipe.evaluate.every = 1;
  const std::vector<RunRecord> runs{published, own};
  const MeanCurve theirs = mean_curve(runs, {"a", {0}}, "accuracy", 10);
  const MeanCurve ours = mean_curve(runs, {"b", {1}}, "accuracy", 10);
  ASSERT_EQ(theirs.mean.size(), ours.mean.size());
  for (std::size_t round = 9; round < 40; round += 10) {
    EXPECT_NEAR(theirs.mean[round], ours.mean[round], 1e-4) << round;
  }
  EXPECT_TRUE(std::isnan(theirs.mean[10]));
  ASSERT_EQ(published.recipe.phases.size(), 2u);
  EXPECT_EQ(published.recipe.phases[0].rounds, 4);
  EXPECT_EQ(published.recipe.phases[1].rounds, 36);
}

TEST(PublishedRun, WithoutACurveHasNoRounds) {
  EXPECT_TRUE(published_run(table2_result(1, 0.5)).history.rounds.empty());
}

class PublishedRuns : public testing::Test {
 protected:
  void add(std::string_view row, std::uint64_t seed, int rounds = 40) {
    Result result = table2_result(seed, 0.5);
    result.row = row;
    result.rounds = 40;
    result.curve = curve_of_run(played(rounds), two_phases(4, 36), {"accuracy"});
    append_result(file(), result);
  }
  std::filesystem::path file() const { return folder_.path() / "results.jsonl"; }
  std::vector<std::string> names(const std::vector<std::string>& rows) const {
    std::vector<std::string> names;
    for (const RunRecord& run : published_runs(file(), {"table2"}, rows)) names.push_back(run.name);
    return names;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(PublishedRuns, OfARowAreAGroupOverSeeds) {
  for (const std::uint64_t seed : {1, 2, 3}) add("fed_ep_i", seed);
  const std::vector<RunRecord> runs = published_runs(file(), {"table2"}, {});
  const std::vector<RunGroup> groups = group_by_seed(runs);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].name, "fed_ep_i");
  EXPECT_EQ(groups[0].runs.size(), 3u);
}

TEST_F(PublishedRuns, ComeInThePapersOrderOrTheOneAskedFor) {
  add("mine", 1);
  add("fed_ep_i", 1);
  add("fed_avg", 1);
  EXPECT_EQ(names({}), (std::vector<std::string>{"fed_avg", "fed_ep_i", "mine"}));
  EXPECT_EQ(names({"mine", "fed_avg"}), (std::vector<std::string>{"mine", "fed_avg"}));
}

TEST_F(PublishedRuns, OfOneSeedAreTheLastAlone) {
  add("fed_avg", 1, 10);
  add("fed_avg", 1, 30);
  const std::vector<RunRecord> runs = published_runs(file(), {"table2"}, {});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(std::isfinite(score_of(runs[0].history.rounds[29], "accuracy")));
}

TEST_F(PublishedRuns, ThatAreNotThereAreNamed) {
  add("fed_avg", 1);
  add("fed_ep_i", 1, 0);  // without a curve
  EXPECT_EQ(names({}), std::vector<std::string>{"fed_avg"});
  EXPECT_TRUE(has(message_of<InputError>([&] {
                    names({"fed_avg", "fed_ep_i"});
                  }),
                  "curves of fed_ep_i must be there"));
  EXPECT_TRUE(has(message_of<InputError>([&] { published_runs(file(), {"table8"}, {}); }),
                  "curves of table8 must be there"));
}

}  // namespace
}  // namespace fedep
