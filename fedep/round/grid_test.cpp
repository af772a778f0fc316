#include "fedep/round/grid.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/optim/clip.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

Message random_message(std::size_t d, Family family, std::uint32_t step, float scale = 1) {
  V eta(d), lambda(d);
  fill_normal({.seed = 3, .step = step}, eta.span());
  fill_normal({.seed = 4, .step = step}, lambda.span());
  if (family == Family::isotropic) return power(Message(eta, lambda[0]), scale);
  return power(Message(eta, lambda), scale);
}

struct GridCase {
  int bits;
  Family family;
  double clip;
};

class GridLaw : public testing::TestWithParam<GridCase> {
 protected:
  Grid grid_for(std::size_t asked, double scale, const Message& global) const {
    return choose_grid(
        {}, {.clip = GetParam().clip, .scale = scale, .asked = asked, .bits = GetParam().bits},
        global);
  }
};

TEST_P(GridLaw, TheWayThereAndBackErrsByAtMostHalfAUnitAndAFloatsRounding) {
  const Message global = random_message(50, GetParam().family, 1);
  for (const double scale : {1.0, 0.05, 0.3}) {
    const Grid grid = grid_for(20, scale, global);
    const Message delta = random_message(50, GetParam().family, 2);
    const auto rounded = to_grid(grid, delta, scale);
    ASSERT_TRUE(rounded.has_value());
    const Message back = from_grid(grid, *rounded);
    EXPECT_EQ(back.family(), GetParam().family);
    const auto expect_close = [&](std::span<const float> sent, std::span<const float> meant,
                                  int exponent) {
      for (std::size_t i = 0; i < meant.size(); ++i) {
        const double exact = double(meant[i]) * scale;
        EXPECT_LE(std::fabs(double(sent[i]) - exact),
                  0.5 * std::ldexp(1.0, exponent) + std::fabs(exact) * 0x1p-23);
      }
    };
    expect_close(back.eta().span(), delta.eta().span(), grid.eta_exponent);
    expect_close(back.lambda_span(), delta.lambda_span(), grid.lambda_exponent);
  }
}

TEST_P(GridLaw, WhatIsOnTheGridComesBackInEveryBitAndIsSentTheSameAgain) {
  const Message global = random_message(50, GetParam().family, 1);
  const Grid grid = grid_for(3, 1, global);
  const auto once = to_grid(grid, random_message(50, GetParam().family, 2), 1);
  ASSERT_TRUE(once.has_value());
  const Message sent = from_grid(grid, *once);
  const auto twice = to_grid(grid, sent, 1);
  ASSERT_TRUE(twice.has_value());
  EXPECT_EQ(from_grid(grid, *twice), sent);
  if (GetParam().bits == 32) return;
  EXPECT_EQ(sent,
            random_message(50, GetParam().family, 2));  // 64 bits hold floats of the usual size
}

TEST_P(GridLaw, TheSumOfAllClientsAtTheLimitFits) {
  for (const std::size_t asked : {1u, 2u, 3u, 7u, 20u, 100u, 1000u}) {
    const Grid grid = grid_for(asked, 1, random_message(4, GetParam().family, 1));
    const double most = double(grid.limit) * double(asked);
    EXPECT_LE(most, std::ldexp(1.0, GetParam().bits - 2));
    EXPECT_GT(most, std::ldexp(0.9, GetParam().bits - 2));  // and nothing is given away
  }
}

// Whatever to_grid lets through is within the announced limit, also where that is no double.
TEST_P(GridLaw, NothingBeyondTheLimitIsLetThrough) {
  for (std::size_t asked = 1; asked <= 200; ++asked) {
    Grid grid = grid_for(asked, 1, random_message(4, GetParam().family, 1));
    grid.eta_exponent = grid.lambda_exponent = 0;
    const float most = float(grid.limit);
    for (const float units : {most, std::nextafter(most, 0.0f), std::nextafter(most, HUGE_VALF)}) {
      for (const double scale : {1.0, double(grid.limit) / double(units)}) {
        for (const float sign : {1.0f, -1.0f}) {
          const auto rounded = to_grid(grid, Message(V{sign * units}, 0.0f), scale);
          EXPECT_LE(rounded ? std::abs(rounded->eta[0]) : 0, grid.limit) << asked;
        }
      }
    }
    EXPECT_TRUE(to_grid(grid, Message(V{std::nextafter(most, 0.0f)}, 0.0f), 1).has_value());
    EXPECT_FALSE(to_grid(grid, Message(V{1.01f * most}, 0.0f), 1).has_value());
  }
}

TEST_P(GridLaw, RefusesWhatIsOutsideOrNotFinite) {
  const Grid grid = grid_for(5, 1, random_message(3, GetParam().family, 1));
  const float eta_end = float(std::ldexp(double(grid.limit), grid.eta_exponent));
  const float lambda_end = float(std::ldexp(double(grid.limit), grid.lambda_exponent));
  for (const float bad : {2 * eta_end, -2 * eta_end, NAN, INFINITY, -INFINITY}) {
    Message delta = random_message(3, GetParam().family, 2, 1e-3f);
    ASSERT_TRUE(to_grid(grid, delta, 1).has_value());
    delta.eta()[1] = bad;
    EXPECT_FALSE(to_grid(grid, delta, 1).has_value()) << bad;
  }
  for (const float bad : {2 * lambda_end, NAN, -INFINITY}) {
    Message delta = random_message(3, GetParam().family, 2, 1e-3f);
    delta.lambda_span().back() = bad;
    EXPECT_FALSE(to_grid(grid, delta, 1).has_value()) << bad;
  }
}

INSTANTIATE_TEST_SUITE_P(Grids, GridLaw,
                         testing::Values(GridCase{64, Family::diagonal, 0},
                                         GridCase{64, Family::isotropic, 0},
                                         GridCase{64, Family::diagonal, 20},
                                         GridCase{32, Family::diagonal, 0},
                                         GridCase{32, Family::isotropic, 20}));

TEST(Grid, RoundsToTheNearestUnitAndTiesToEven) {
  const Grid grid{
      .eta_exponent = 0, .lambda_exponent = 0, .bits = 64, .limit = std::int64_t(1) << 60};
  const HostVector<float> values{0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 8388607.5f, 0x1p59f};
  const auto rounded = to_grid(grid, Message(values, 0.0f), 1.0);
  ASSERT_TRUE(rounded);
  const std::vector<std::int64_t> expected{0, 2, 2, 0, -2, 0, 8388608, std::int64_t(1) << 59};
  EXPECT_EQ(rounded->eta, expected);
}

// Many small numbers go another way than a few or large ones; each rounds as it does by itself.
TEST(Grid, RoundsANumberTheSameWhateverIsBesideIt) {
  const Grid grid{
      .eta_exponent = 0, .lambda_exponent = 0, .bits = 64, .limit = std::int64_t(1) << 60};
  HostVector<float> values(1000);
  fill_normal({.seed = 8}, values.span());
  for (std::size_t i = 0; i < 300; ++i) values[i] = std::ldexp(values[i], int(i % 56));
  values[700] = 2.5f;
  values[701] = -1.5f;
  values[702] = 0x1p50f;
  values[900] = -0x1p52f;  // its neighbours cannot go the fast way with it
  for (const double scale : {1.0, 0.37, 2.9}) {
    const auto together = to_grid(grid, Message(values, 0.0f), scale);
    ASSERT_TRUE(together.has_value());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto alone = to_grid(grid, Message(HostVector<float>{values[i]}, 0.0f), scale);
      ASSERT_TRUE(alone.has_value());
      EXPECT_EQ(together->eta[i], alone->eta[0]) << i;
    }
  }
  for (const float bad : {NAN, -INFINITY, 0x1p62f}) {
    values[500] = bad;
    EXPECT_FALSE(to_grid(grid, Message(values, 0.0f), 1.0).has_value());
  }
}

TEST(Grid, FromAClipNormLetsEveryClippedDeltaThrough) {
  for (const double clip : {1e-6, 0.7, 1.0, 100.0, 6500.0, 1e9}) {
    for (const double scale : {1.0, 0.05, 1.0 / 3}) {
      for (const int bits : {32, 64}) {
        const Grid grid = choose_grid({}, {.clip = clip, .scale = scale, .asked = 20, .bits = bits},
                                      Message(V(1), 0.0f));
        // The whole norm in one coordinate, as large as a float can be after clipping.
        const float most = std::nextafter(float(clip), HUGE_VALF);
        EXPECT_TRUE(to_grid(grid, Message(V{most}, 0.0f), scale).has_value());
        EXPECT_TRUE(to_grid(grid, Message(V{0}, -most), scale).has_value());
        EXPECT_FALSE(to_grid(grid, Message(V{5 * most}, 0.0f), scale).has_value());
      }
    }
  }
}

TEST(Grid, FollowsTheLastAggregateAndBeforeItTheGlobal) {
  const Message global(V{1024, 1}, V{8, 1});
  const GridChoice choice{.asked = 4};
  const Grid first = choose_grid({}, choice, global);
  const Grid later = choose_grid({.largest_eta = 1024, .largest_lambda = 8}, choice, global);
  EXPECT_EQ(first, later);
  EXPECT_EQ(first.eta_exponent - first.lambda_exponent, 7);
  const Grid finer = choose_grid({.largest_eta = 512, .largest_lambda = 8}, choice, global);
  EXPECT_EQ(finer.eta_exponent, first.eta_exponent - 1);
  EXPECT_EQ(finer.lambda_exponent, first.lambda_exponent);
}

TEST(Grid, StaysUsefulWhenTheLastAggregateWasNothing) {
  // A round of converged clients says little of what a client that was never asked will send.
  const Message global(V{1024, 1}, V{8, 1});
  for (const double last : {0.0, 1e-30}) {
    const Grid grid =
        choose_grid({.largest_eta = last, .largest_lambda = last}, {.asked = 20}, global);
    EXPECT_TRUE(to_grid(grid, global, 1).has_value()) << last;
  }
}

TEST(Grid, IsCoarserAfterARefusalUntilNothingIsRefused) {
  const Message global(V{1}, 1.0f), total(V{0.5f}, 0.25f);
  for (const int bits : {32, 64}) {
    const GridChoice choice{.asked = 4, .bits = bits};
    GridState state;
    int exponent = choose_grid(state, choice, global).eta_exponent;
    for (int round = 0; round < 3; ++round) {
      state = next_grid_state(state, total, 1, bits);
      const Grid grid = choose_grid(state, choice, global);
      EXPECT_GT(grid.eta_exponent, exponent);
      exponent = grid.eta_exponent;
    }
    state = next_grid_state(state, total, 0, bits);
    EXPECT_EQ(state, (GridState{.largest_eta = 0.5, .largest_lambda = 0.25, .extra_bits = 0}));
  }
}

// A clip norm far above the deltas makes a grid on which nothing is left of them.
TEST(Grid, KnowsWhenRoundingLosesADelta) {
  HostVector<float> values(1000);
  fill_normal({.seed = 9}, values.span());
  const Message delta(values, 1.0f);
  const double norm = joint_norm(delta);
  for (const int bits : {32, 64}) {
    for (double clip = 1; clip < 1e24; clip *= 10) {
      const Grid grid =
          choose_grid({}, {.clip = clip, .scale = 0.1, .asked = 10, .bits = bits}, delta);
      const auto rounded = to_grid(grid, delta, 0.1 * std::min(1.0, clip / norm));
      ASSERT_TRUE(rounded.has_value());
      const double scale = 0.1 * std::min(1.0, clip / norm);
      const double lost =
          joint_norm(quotient(from_grid(grid, *rounded), power(delta, float(scale)))) /
          (scale * norm);
      if (lost > 0.2) {
        EXPECT_TRUE(is_too_coarse(grid, scale * norm, 1001)) << bits << " " << clip;
      } else if (lost < 0.05) {
        EXPECT_FALSE(is_too_coarse(grid, scale * norm, 1001)) << bits << " " << clip;
      }
      // Deltas of 1, a norm of 32, are all gone somewhat above.
      const double most = largest_clip(bits, 10, 1);
      EXPECT_TRUE(clip >= 1e-3 * most || lost < 0.1) << bits << " " << clip;
      EXPECT_TRUE(clip <= 10 * most || lost > 0.5) << bits << " " << clip;
    }
  }
  EXPECT_FALSE(is_too_coarse({.limit = 1}, 0, 10));  // nothing to lose
}

TEST(Grid, SaysWhichArgumentIsWrong) {
  const Message global(V{1}, 1.0f);
  EXPECT_THROW(choose_grid({}, {.bits = 16}, global), InputError);
  EXPECT_THROW(choose_grid({}, {.asked = 0}, global), InputError);
  EXPECT_THROW(choose_grid({}, {.scale = 0}, global), InputError);
  EXPECT_THROW(choose_grid({}, {.asked = std::size_t(1) << 31, .bits = 32}, global), InputError);
}

}  // namespace
}  // namespace fedep
