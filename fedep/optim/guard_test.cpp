#include "fedep/optim/guard.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr GuardMode kModes[] = {GuardMode::count, GuardMode::back_off, GuardMode::floor,
                                GuardMode::skip};

TEST(Guard, LeavesAProperMessageAloneInEveryMode) {
  const Message before(V{1, 1}, V{1, 1});
  for (const GuardMode mode : kModes) {
    for (const Message& proper : {Message(V{1, -5}, V{0.5f, 3}), Message(V{1, -5}, 0.5f)}) {
      Message after = proper;
      EXPECT_EQ(guard({.mode = mode}, before, after), GuardOutcome{});
      EXPECT_EQ(after, proper);
    }
  }
}

TEST(Guard, CountsCoordinatesThatAreNotPositiveAndFinite) {
  const Message proper(V(5), 1.0f);
  EXPECT_EQ(count_improper(proper, Message(V(5), V{1, 0, -1, NAN, INFINITY})), 4u);
  EXPECT_EQ(count_improper(proper, Message(V(5), 1.0f)), 0u);
  EXPECT_EQ(count_improper(proper, Message(V(5), 0.0f)), 5u);
  EXPECT_EQ(count_improper(proper, Message(V(5), NAN)), 5u);
  // A coordinate nobody has informed, before or after, is not a failure.
  EXPECT_EQ(count_improper(Message(V(3), V{0, 0, 1}), Message(V(3), V{0, -1, 0})), 2u);
  EXPECT_EQ(count_improper(Message(V(3), 0.0f), Message(V(3), 0.0f)), 0u);
  for (const GuardMode mode : kModes) {
    Message after(V(3), V{1, -1, 0});
    EXPECT_EQ(guard({.mode = mode}, Message(V(3), V{1, 1, 1}), after).improper, 2u);
  }
}

TEST(Guard, LeavesEverythingWhenItOnlyCounts) {
  const Message wanted(V{1, 2}, V{-1, 2});
  Message after = wanted;
  const GuardOutcome outcome = guard({.mode = GuardMode::count}, Message(V(2), 1.0f), after);
  EXPECT_EQ(after, wanted);
  EXPECT_EQ(outcome, (GuardOutcome{.improper = 1, .scale = 1, .skipped = false}));
}

TEST(Guard, SkipsBackToWhereItWas) {
  const Message before(V{1, 2}, V{3, 4});
  Message after(V{9, 9}, V{-1, 2});
  const GuardOutcome outcome = guard({.mode = GuardMode::skip}, before, after);
  EXPECT_EQ(after, before);
  EXPECT_EQ(outcome, (GuardOutcome{.improper = 1, .scale = 0, .skipped = true}));
}

// lambda goes from 1 to `to`; 1 + s(to - 1) > 0 asks for s < 1/(1 - to).
TEST(Guard, BacksOffByTheLargestPowerOfFourFifthsThatIsPositive) {
  for (const float to : {-0.1f, -0.5f, -1.0f, -10.0f, -1000.0f}) {
    for (const bool isotropic : {true, false}) {
      const Message before = isotropic ? Message(V{2, 0}, 1.0f) : Message(V{2, 0}, V{1, 1});
      const Message wanted = isotropic ? Message(V{4, 1}, to) : Message(V{4, 1}, V{to, 2});
      Message after = wanted;
      const GuardOutcome outcome = guard({.mode = GuardMode::back_off}, before, after);
      double scale = 0.8;
      while (scale >= 1 / (1 - double(to))) scale *= 0.8;
      EXPECT_DOUBLE_EQ(outcome.scale, scale) << to;
      EXPECT_EQ(outcome.improper, isotropic ? 2u : 1u);
      EXPECT_FALSE(outcome.skipped);
      EXPECT_GT(min_precision(after), 0);
      EXPECT_NEAR(after.eta()[0], 2 + scale * 2, 1e-6);
      EXPECT_NEAR(after.lambda_span()[0], 1 + scale * (double(to) - 1), 1e-4);
    }
  }
}

TEST(Guard, GivesUpBackingOffWhereNoStepHelps) {
  for (const Message& before : {Message(V{1}, 0.0f), Message(V{1}, -1.0f), Message(V{1}, 1e-8f)}) {
    Message after(V{5}, before.lambda_scalar() == 1e-8f ? -1.0f : -2.0f);
    const GuardOutcome outcome = guard({.mode = GuardMode::back_off}, before, after);
    EXPECT_EQ(after, before);
    EXPECT_EQ(outcome.scale, 0);
    EXPECT_TRUE(outcome.skipped);
  }
  Message after(V{5}, NAN);
  EXPECT_TRUE(guard({.mode = GuardMode::back_off}, Message(V{1}, 1.0f), after).skipped);
  EXPECT_EQ(after, Message(V{1}, 1.0f));
}

TEST(Guard, RaisesImproperPrecisionsToTheFloorAtTheMeanTheyHad) {
  const Message before(V{2, 6, 0}, V{1, 2, 0});
  Message after(V{100, 5, 7}, V{-1, 2, 0});
  const GuardOutcome outcome = guard({.mode = GuardMode::floor, .floor = 0.5}, before, after);
  // The last coordinate was never known and does not count, but has a floor to stand on too.
  EXPECT_EQ(outcome, (GuardOutcome{.improper = 1, .scale = 1, .skipped = false}));
  EXPECT_EQ(after, Message(V({1, 5, 0}), V({0.5f, 2, 0.5f})));
  Message isotropic(V{1, 2}, -3.0f);
  guard({.mode = GuardMode::floor, .floor = 0.5}, Message(V{4, 8}, 4.0f), isotropic);
  EXPECT_EQ(isotropic, Message(V({0.5f, 1}), 0.5f));
}

TEST(Guard, KeepsTheMeanOfAPositivePrecisionThatItRaises) {
  for (const bool another_is_improper : {false, true}) {
    Message after(V{0.25f, 1}, V{0.125f, another_is_improper ? -1.0f : 1.0f});
    const GuardOutcome outcome =
        guard({.mode = GuardMode::floor, .floor = 0.5}, Message(V{9, 1}, V{1, 1}), after);
    EXPECT_EQ(after.lambda_vector()[0], 0.5f);
    EXPECT_EQ(after.eta()[0], 1.0f);  // mean 2
    EXPECT_EQ(outcome.improper, another_is_improper ? 1u : 0u);
  }
  Message isotropic(V{0.25f, 0}, 0.125f);
  guard({.mode = GuardMode::floor, .floor = 0.5}, Message(V{9, 1}, 1.0f), isotropic);
  EXPECT_EQ(isotropic, Message(V({1, 0}), 0.5f));
}

TEST(Guard, LeavesPrecisionsFromTheFloorOn) {
  const Message wanted(V{1, 2}, V{0.5f, 3});
  Message after = wanted;
  guard({.mode = GuardMode::floor, .floor = 0.5}, Message(V{9, 1}, V{1, 1}), after);
  EXPECT_EQ(after, wanted);
}

TEST(Guard, LooksAtDirectionsInTheFullFamily) {
  // Eigenvalues 3 and -1 of a matrix whose diagonal is positive.
  const Message before(V{1, 1}, Packed<V>{{2, 0, 2}}), wanted(V{3, 3}, Packed<V>{{1, 2, 1}});
  EXPECT_EQ(count_improper(before, wanted), 1u);
  EXPECT_TRUE(is_improper(before, wanted));
  EXPECT_EQ(count_improper(before, before), 0u);
  EXPECT_FALSE(is_improper(before, before));
  const Message flat = flat_like(V(2), Family::full);
  EXPECT_EQ(count_improper(flat, flat), 0u);
  EXPECT_EQ(count_improper(before, flat), 2u);
  for (const GuardMode mode : kModes) {
    Message after = wanted;
    const GuardOutcome outcome = guard({.mode = mode, .floor = 0.5}, before, after);
    EXPECT_EQ(outcome.improper, 1u);
    EXPECT_EQ(outcome.skipped, mode == GuardMode::skip);
    EXPECT_EQ(is_proper(after), mode != GuardMode::count);
    if (mode == GuardMode::back_off) {
      EXPECT_NEAR(outcome.scale, 0.64, 1e-12);  // positive definite below 2/3
      const Message kept = product(before, power(quotient(wanted, before), float(outcome.scale)));
      EXPECT_EQ(after, kept);
    }
    if (mode == GuardMode::floor) {
      EXPECT_NEAR(min_precision(after), 0.5, 1e-6);
      // Along (1, 1), of eigenvalue 3, the mean stays 1; along (1, -1) it is that of before, 0.
      EXPECT_NEAR(mean(after)[0], 1, 1e-6);
      EXPECT_NEAR(mean(after)[1], 1, 1e-6);
    }
  }
}

}  // namespace
}  // namespace fedep
