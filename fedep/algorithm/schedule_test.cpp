#include "fedep/algorithm/schedule.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/algorithm/cooldown.h"

namespace fedep {
namespace {

TEST(Schedule, ConstantStaysWhereItBegins) {
  for (const std::int64_t i : {-3, 0, 7, 100}) {
    EXPECT_EQ(scheduled(VisitSchedule{.kind = ScheduleKind::constant}, i, 10), 1.0);
  }
}

TEST(Schedule, OthersEndWhereTheyShould) {
  for (const ScheduleKind kind :
       {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::steps}) {
    const VisitSchedule schedule{.kind = kind, .from = 0.8, .to = 0.2, .steps = 3};
    EXPECT_DOUBLE_EQ(scheduled(schedule, -1, 40), 0.8);
    EXPECT_DOUBLE_EQ(scheduled(schedule, 39, 40), 0.2);
    EXPECT_DOUBLE_EQ(scheduled(schedule, 1000, 40), 0.2);
    for (int i = 1; i < 40; ++i) {
      EXPECT_LE(scheduled(schedule, i, 40), scheduled(schedule, i - 1, 40));
    }
  }
}

TEST(Schedule, LinearFallsByTheSameEveryTime) {
  const VisitSchedule schedule{.kind = ScheduleKind::linear, .to = 0.1};
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(scheduled(schedule, i, 50), 1 - 0.9 * (i + 1) / 50, 1e-15);
  }
}

TEST(Schedule, CosineIsHalfWayInTheMiddle) {
  const VisitSchedule schedule{.kind = ScheduleKind::cosine, .to = 0.1};
  EXPECT_NEAR(scheduled(schedule, 19, 40), 0.55, 1e-15);
  EXPECT_GT(scheduled(schedule, 4, 40), 1 - 0.9 * 5 / 40);  // slower than a line at first
}

TEST(Schedule, StepsAreEqualRatiosAtEqualDistances) {
  const VisitSchedule schedule{.kind = ScheduleKind::steps, .from = 1, .to = 0.01, .steps = 2};
  for (int i = 0; i < 30; ++i) {
    EXPECT_NEAR(scheduled(schedule, i, 30), i < 10 ? 1.0 : i < 20 ? 0.1 : 0.01, 1e-15);
  }
}

TEST(Schedule, StepsArriveWhereThereAreMoreFallsThanRounds) {
  const VisitSchedule schedule{.kind = ScheduleKind::steps, .from = 1, .to = 0.5, .steps = 40};
  for (const int count : {1, 2, 3, 16, 40, 41}) {
    EXPECT_DOUBLE_EQ(scheduled(schedule, count - 1, count), 0.5) << count;
    if (count > 1) {
      EXPECT_EQ(scheduled(schedule, 0, count), 1.0) << count;
    }
  }
  EXPECT_NEAR(scheduled(schedule, 1, 3), std::sqrt(0.5), 1e-15);  // one fall a round
}

TEST(Schedule, ALinearOneIsACooldown) {
  const CooldownSettings settings{.after = 5, .rounds = 7, .to = 0.03};
  const RoundSchedule schedule{.after = 5, .rounds = 7, .to = 0.03};
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(scheduled_in_round(schedule, round, 1000), cooldown(settings, round));
    const double gone = std::clamp(double(round - 5 + 1) / 7.0, 0.0, 1.0);
    EXPECT_EQ(cooldown(settings, round), 1 - (1 - 0.03) * gone);
  }
}

TEST(Schedule, WithoutRoundsItLastsToThePhasesEnd) {
  const RoundSchedule schedule{.after = 20, .to = 0.5};
  EXPECT_EQ(scheduled_in_round(schedule, 19, 100), 1.0);
  EXPECT_LT(scheduled_in_round(schedule, 20, 100), 1.0);
  EXPECT_GT(scheduled_in_round(schedule, 98, 100), 0.5);
  EXPECT_DOUBLE_EQ(scheduled_in_round(schedule, 99, 100), 0.5);
}

}  // namespace
}  // namespace fedep
