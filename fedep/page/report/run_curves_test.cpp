#include "fedep/page/report/run_curves.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/page/test_runs.h"

namespace fedep {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsNan;

double half(std::int64_t) { return 0.5; }

TEST(GroupsBySeed, HoldRunsThatDifferInTheirSeedAlone) {
  const std::vector<RunRecord> runs{test_run("ep-seed1", 1, half),
                                    test_run("other", 1, half, {"client.epochs=9"}),
                                    test_run("ep-seed2", 2, half), test_run("again", 1, half)};
  const std::vector<RunGroup> groups = group_by_seed(runs);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_THAT(groups[0].runs, ElementsAre(0u, 2u));
  EXPECT_THAT(groups[1].runs, ElementsAre(1u));
  EXPECT_THAT(groups[2].runs, ElementsAre(3u));  // the same seed twice is no spread
  EXPECT_EQ(groups[0].name, "ep");
  EXPECT_EQ(groups[1].name, "other");
}

TEST(GroupsBySeed, AreCalledWhatTheirNamesShare) {
  const auto name = [](const char* a, const char* b) {
    return group_by_seed(std::vector{test_run(a, 1, half), test_run(b, 2, half)}).front().name;
  };
  EXPECT_EQ(name("fed_ep_i-seed1", "fed_ep_i-seed10"), "fed_ep_i");
  EXPECT_EQ(name("fed_ep_1", "fed_ep_2"), "fed_ep");
  EXPECT_EQ(name("a", "b"), "a");
  EXPECT_EQ(name("1", "2"), "1");
  EXPECT_EQ(name("x/1", "x/2"), "x");
  EXPECT_TRUE(group_by_seed({}).empty());
}

TEST(Scores, AreWhatTheLogsHaveBesideCounters) {
  RunRecord run = test_run("a", 1, half);
  set_score(run.history.rounds[3], "accuracy_marginal", 0.6);
  set_score(run.history.rounds[4], "nll", 1.5);
  set_score(run.history.rounds[5], "ece", NAN);
  EXPECT_THAT(scores_in(std::vector{run}), ElementsAre("accuracy", "nll", "train_loss"));
  RunRecord measured = run;
  measured.history.rounds[5].window_end = WindowEnd{0.1, 0.2};
  EXPECT_THAT(scores_in(std::vector{measured}),
              ElementsAre("accuracy", "nll", "train_loss", "moved"));
  EXPECT_THAT(score_curve(run, "nll"),
              ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 1.5, IsNan()));
  EXPECT_TRUE(score_style("accuracy").percent);
  EXPECT_TRUE(score_style("accuracy").larger_is_better);
  EXPECT_FALSE(score_style("nll").larger_is_better);
  EXPECT_EQ(score_style("something_new").title, "something_new");
  EXPECT_TRUE(score_style("accuracy_average").larger_is_better);
  EXPECT_TRUE(score_style("accuracy_average").is_score);
  EXPECT_FALSE(score_style("temperature").is_score);
  EXPECT_FALSE(score_style("temperature_average").is_score);
  EXPECT_EQ(score_style("temperature_average").title, "Temperature T, of the server's average");
  EXPECT_EQ(score_style("ece_average_calibrated").title,
            "Calibration error (ECE), of the server's average, after a temperature");
}

TEST(MeanCurves, AreMeanAndSampleDeviationOverSeeds) {
  const std::vector<RunRecord> runs{test_run("a1", 1, [](auto i) { return 0.1 * double(i); }),
                                    test_run("a2", 2, [](auto i) { return 0.3 * double(i); })};
  const MeanCurve curve = mean_curve(runs, group_by_seed(runs)[0], "accuracy");
  ASSERT_EQ(curve.mean.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(curve.mean[std::size_t(i)], 0.2 * i, 1e-12);
    // ((-d)^2 + d^2) / (2 - 1) with d = 0.1 i
    EXPECT_NEAR(curve.deviation[std::size_t(i)], std::sqrt(2) * 0.1 * i, 1e-12);
  }
}

TEST(MeanCurves, EndWithTheShortestRunAndNeedAllOfThem) {
  std::vector<RunRecord> runs{test_run("a1", 1, half), test_run("a2", 2, half),
                              test_run("a3", 3, half)};
  runs[0].history.rounds.resize(4);
  set_score(runs[1].history.rounds[2], "accuracy", NAN);
  runs[2].history.rounds.clear();  // not begun: does not count
  const MeanCurve curve = mean_curve(runs, group_by_seed(runs)[0], "accuracy");
  EXPECT_THAT(curve.mean, ElementsAre(0.5, 0.5, IsNan(), 0.5));
  const MeanCurve one = mean_curve(runs, {"a1", {0}}, "accuracy");
  EXPECT_THAT(one.deviation, ElementsAre(IsNan(), IsNan(), IsNan(), IsNan()));
  EXPECT_TRUE(mean_curve(runs, {"a3", {2}}, "accuracy").mean.empty());
}

TEST(MeanCurves, AreSmoothedOverRoundsNotOverEvaluations) {
  const auto rising = [](std::int64_t i) { return double(i); };
  const std::vector<RunRecord> runs{test_run("a", 1, rising)};
  EXPECT_THAT(mean_curve(runs, {"a", {0}}, "accuracy", 3).mean,
              ElementsAre(IsNan(), IsNan(), DoubleNear(1, 1e-12), DoubleNear(2, 1e-12),
                          DoubleNear(3, 1e-12), DoubleNear(4, 1e-12)));
  // Every second round is scored: rounds 2, 4, 6 with 1, 3, 5; four rounds hold two of them.
  const std::vector<RunRecord> sparse{test_run("a", 1, rising, {"evaluate.every=2"})};
  EXPECT_THAT(
      mean_curve(sparse, {"a", {0}}, "accuracy", 4).mean,
      ElementsAre(IsNan(), IsNan(), IsNan(), DoubleNear(2, 1e-12), IsNan(), DoubleNear(4, 1e-12)));
}

}  // namespace
}  // namespace fedep
