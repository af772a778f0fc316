// Clients' likelihoods are Gaussians here, so q is exactly prior, likelihoods and what is left of the
// beginning: whatever another alpha would have changed is what is left.

#include "fedep/round/diagnosis/start_left.h"

#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/dense_gaussian.h"
#include "fedep/round/test_federation.h"

namespace fedep {
namespace {

using Hospitals = Federation<OnHost>;

Hospitals begun(Phase phase, double alpha) {
  phase.factors = FactorStart::carry_mean;
  phase.alpha = alpha;
  return Hospitals(random_clients(6, Family::diagonal), phase, with_prior(0.5, 2), V{0.5f, -1, 2});
}

PlayedRound facts_of(std::int64_t round, const RoundNumbers& numbers) {
  return {.round = round,
          .whole = numbers.answered == numbers.asked && numbers.clipped == 0,
          .step_scale = numbers.step_scale};
}

// Plays rounds with alpha and with twice as much, and holds what is left against the difference.
void expect_known(const Phase& phase, int rounds, const char* what) {
  Hospitals once = begun(phase, 0.2), twice = begun(phase, 0.4);
  StartLeft left(once.phase, once.population, 1);
  for (int round = 0; round < rounds; ++round) {
    left.follow(facts_of(round, once.play()));
    twice.play();
    const V difference = twice.global().lambda_vector() - once.global().lambda_vector();
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_NEAR(std::abs(difference[i]), left.precision(), 1e-4) << what << ", round " << round;
    }
  }
}

TEST(StartLeft, IsGeometricInTheVisitsOfAllClients) {
  Phase phase = ep_phase(6);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.3};
  const Hospitals run = begun(phase, 0.2);
  StartLeft left(run.phase, run.population, 1);
  const double all = 0.2 * double(run.population.examples());
  EXPECT_DOUBLE_EQ(left.precision(), all);
  for (int visits = 1; visits <= 8; ++visits) {
    left.follow({.round = visits - 1});
    EXPECT_NEAR(left.precision(), all * std::pow(0.7, visits), 1e-12 * all);
  }
}

TEST(StartLeft, IsWhatAnotherAlphaWouldHaveMadeDifferent) {
  Phase phase = ep_phase(6);
  expect_known(phase, 30, "all clients");
  phase = ep_phase(2);
  expect_known(phase, 30, "some of the clients");
  phase.damping = {.rule = DampingRule::decaying, .outside = true};
  expect_known(phase, 30, "damped outside");
  phase.server_optimizer.lr = phase.factor_optimizer.lr = 0.4;
  phase.cooldown = CooldownSettings{.after = 3, .rounds = 10, .to = 0.1};
  expect_known(phase, 30, "cooled down");
  phase = ep_phase(3);
  phase.weight = WeightRule::examples;
  phase.damping.rule = DampingRule::none;
  expect_known(phase, 30, "weighted by examples");
}

TEST(StartLeft, IsKnownWithMomentumToo) {
  Phase phase = ep_phase(2);
  phase.server_optimizer.momentum = phase.factor_optimizer.momentum = 0.5;
  phase.server_optimizer.lr = phase.factor_optimizer.lr = 0.3;
  expect_known(phase, 40, "momentum");
  phase.clock = FactorClock::round;
  expect_known(phase, 40, "momentum on the server's clock");
  phase.clock = FactorClock::visit;
  phase.factor_optimizer.momentum = 0;
  expect_known(phase, 40, "momentum of the server alone");
}

TEST(StartLeft, IsKnownOfClientsWithoutMemory) {
  for (const ShareRule share : {ShareRule::examples, ShareRule::equal}) {
    for (const std::size_t asked : {2, 6}) expect_known(sep_phase(asked, share), 30, "share");
  }
  Phase phase = sep_phase(3, ShareRule::examples);
  phase.server_optimizer.momentum = 0.6;
  expect_known(phase, 30, "share with momentum");
  phase.cavity = CavityKind::whole;
  expect_known(phase, 10, "whole");
  phase.cavity = CavityKind::flat;
  phase.server_optimizer.momentum = 0;
  expect_known(phase, 10, "flat");
}

TEST(StartLeft, OfAClientThatIsNeverVisitedIsAllOfIt) {
  Phase phase = ep_phase(1);
  phase.damping.rule = DampingRule::none;  // a visit replaces the factor
  const Hospitals run = begun(phase, 0.2);
  StartLeft left(run.phase, run.population, 1);
  left.follow({.round = 0});
  const std::size_t visited = sample_clients(1, 0, 6, 1)[0];
  EXPECT_NEAR(left.precision(),
              0.2 * double(run.population.examples() - run.population[visited].examples), 1e-9);
}

TEST(StartLeft, FollowsAStepThatTheGuardMadeShorter) {
  Phase phase = ep_phase(6);
  const Hospitals run = begun(phase, 0.2);
  StartLeft whole(run.phase, run.population, 1), part(run.phase, run.population, 1),
      none(run.phase, run.population, 1);
  whole.follow({.round = 0});
  part.follow({.round = 0, .step_scale = 0.5});
  none.follow({.round = 0, .step_scale = 0});
  const double all = 0.2 * double(run.population.examples());
  EXPECT_NEAR(part.precision(), (whole.precision() + all) / 2, 1e-9);
  EXPECT_EQ(none.precision(), all);
}

TEST(StartLeft, IsTheMostItCanBeWhereAnswersAreMissing) {
  Hospitals once = begun(ep_phase(4), 0.2), twice = begun(ep_phase(4), 0.4);
  StartLeft left(once.phase, once.population, 1);
  for (int round = 0; round < 20; ++round) {
    once.executor.lost = twice.executor.lost = {std::size_t(round) % 3};
    left.follow(facts_of(round, once.play()));
    twice.play();
    const float difference = twice.global().lambda_vector()[0] - once.global().lambda_vector()[0];
    EXPECT_GE(left.precision(), double(difference) - 1e-4);
  }
}

TEST(StartLeft, IsNotMadeUpWhereStepsAreNotLinear) {
  Phase phase = ep_phase(6);
  phase.factor_optimizer.name = "adam";
  const Hospitals run = begun(phase, 0.2);
  EXPECT_TRUE(std::isnan(StartLeft(run.phase, run.population, 1).precision()));
  phase = ep_phase(6);
  phase.server_optimizer.momentum = 0.5;
  const Hospitals moving = begun(phase, 0.2);
  StartLeft left(moving.phase, moving.population, 1);
  left.follow({.round = 0, .whole = false});
  EXPECT_TRUE(std::isnan(left.precision()));
}

TEST(StartLeft, IsThereOnlyWhereFactorsBeginWithAlpha) {
  Phase phase = ep_phase(6);
  EXPECT_FALSE(begins_with_alpha(phase));
  phase.factors = FactorStart::carry_mean;
  EXPECT_TRUE(begins_with_alpha(phase));
  phase.algorithm = &find_algorithm("fed_avg");
  EXPECT_FALSE(begins_with_alpha(phase));
}

TEST(StartShares, ArePartsOfEachWeightsPrecision) {
  EXPECT_EQ(start_shares(Message(V{1, 1}, V{4, 16}), 2), (std::vector<double>{0.5, 0.125}));
  EXPECT_EQ(start_shares(Message(V{1, 1}, 8.0f), 2), (std::vector<double>{0.25}));
  EXPECT_EQ(start_shares(Message(V{1, 1}, V{4, 0}), 0), (std::vector<double>{0, 1}));
}

// Λ = [[5, 3], [3, 5]] has the variances 5/16; without 1 on its diagonal, [[4, 3], [3, 4]], 4/7.
TEST(StartShares, OfAMatrixAreOfWhatIsLeftOnceAllElseIsIntegratedOut) {
  const DenseGaussian<double> q{Eigen::Vector2d(1, 2),
                                (Eigen::Matrix2d() << 5, 3, 3, 5).finished()};
  const std::vector<double> shares = start_shares(to_message<float>(q), 1);
  ASSERT_EQ(shares.size(), 2u);
  for (const double share : shares) EXPECT_NEAR(share, 1 - (5.0 / 16) / (4.0 / 7), 1e-12);
  EXPECT_GT(shares[0], 1.0 / 5);  // more than of the diagonal: it held what the columns share
}

TEST(StartShares, OfADiagonalMatrixAreThoseOfItsDiagonal) {
  const DenseGaussian<double> q{Eigen::Vector2d(1, 2), Eigen::Vector2d(4, 16).asDiagonal()};
  const std::vector<double> shares = start_shares(to_message<float>(q), 2);
  EXPECT_NEAR(shares[0], 0.5, 1e-12);
  EXPECT_NEAR(shares[1], 0.125, 1e-12);
  EXPECT_EQ(start_shares(to_message<float>(q), 4)[1], 1);  // the rest would be improper
}

}  // namespace
}  // namespace fedep
