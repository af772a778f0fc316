#include "fedep/page/report/thinned_rounds.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/page/report/round_counters.h"
#include "fedep/page/test_runs.h"

namespace fedep {
namespace {

RoundRecord numbered(std::int64_t round) {
  RoundRecord record = test_round(round, double(round));
  record.dropped = round % 3;
  record.start_precision = 1.0 / double(round + 1);
  return record;
}

TEST(ThinnedRounds, AreAllOfThemWhileTheyAreFew) {
  ThinnedRounds rounds(8);
  for (std::int64_t i = 0; i < 8; ++i) rounds.add(numbered(i));
  EXPECT_EQ(rounds.each(), 1);
  ASSERT_EQ(rounds.records().size(), 8u);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(score_of(rounds.records()[std::size_t(i)], "accuracy"), double(i));
  }
}

TEST(ThinnedRounds, StayFewLoseNoSumAndEndWithTheLastRound) {
  ThinnedRounds rounds(8);
  for (std::int64_t i = 0; i < 1000; ++i) {
    rounds.add(numbered(i));
    const auto& records = rounds.records();
    ASSERT_LE(records.size(), 8u);
    ASSERT_EQ(rounds.played(), i + 1);
    ASSERT_EQ(std::int64_t(records.size()), (i + rounds.each()) / rounds.each());
    double seconds = 0;
    std::int64_t bytes = 0, dropped = 0, expected = 0;
    for (const RoundRecord& record : records) {
      seconds += record.seconds;
      bytes += record.bytes_up;
      dropped += record.dropped;
    }
    for (std::int64_t j = 0; j <= i; ++j) expected += j % 3;
    ASSERT_EQ(seconds, 0.25 * double(i + 1));
    ASSERT_EQ(bytes, 100 * (i + 1));
    ASSERT_EQ(dropped, expected);
    ASSERT_EQ(records.back().round, i);
    ASSERT_EQ(records.back().start_precision, 1.0 / double(i + 1));
    ASSERT_EQ(score_of(records.back(), "accuracy"), double(i));
    for (std::size_t r = 0; r + 1 < records.size(); ++r) {
      ASSERT_EQ(records[r].round, std::int64_t(r + 1) * rounds.each() - 1);
    }
  }
  EXPECT_EQ(rounds.each(), 128);
}

TEST(ThinnedRounds, KeepTheScoresOfTheLastRoundThatWasScored) {
  ThinnedRounds rounds(2);
  for (std::int64_t i = 0; i < 4; ++i) {
    RoundRecord record = numbered(i);
    if (i != 1) record.scores.clear();
    if (i == 2) record.scores = {{"nll", 0.5}, {"ece", NAN}};
    rounds.add(record);
  }
  ASSERT_EQ(rounds.records().size(), 2u);
  EXPECT_EQ(score_of(rounds.records()[0], "accuracy"), 1);
  EXPECT_EQ(score_of(rounds.records()[1], "nll"), 0.5);
  EXPECT_TRUE(std::isnan(score_of(rounds.records()[1], "ece")));
}

TEST(RoundCounters, CountWhatHappenedAndInHowManyRounds) {
  RoundCounters counters;
  RoundRecord round = numbered(0);
  counters.add(round);
  round.dropped = 2;
  round.step_scale = 0.5;
  counters.add(round);
  round.dropped = 1;
  counters.add(round);
  EXPECT_EQ(counters.dropped, (RoundCounter{3, 2}));
  EXPECT_EQ(counters.backed_off, (RoundCounter{2, 2}));
  EXPECT_EQ(counters.guarded, RoundCounter{});
}

}  // namespace
}  // namespace fedep
