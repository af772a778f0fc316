// Rounds in which something goes wrong: clients that drop out or lie, updates outside the grid,
// steps that the guard does not let pass.

#include "fedep/round/play_round.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/round/test_play_round.h"

namespace fedep {
namespace {

TEST(DroppedClients, LeaveDampingAndTheirOwnFactorsUnchanged) {
  Federation run(whole_clients(), ep_phase(4));
  run.executor.lost = {1, 3};
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.asked, 4u);
  EXPECT_EQ(numbers.answered, 2u);
  EXPECT_EQ(numbers.dropped, 2u);
  EXPECT_EQ(run.executor.damping, 0.25);  // of those asked, not of those that answered
  const Message a = run.clients.likelihood(run.population[0].key),
                c = run.clients.likelihood(run.population[2].key);
  EXPECT_EQ(run.state.global, power(product(a, c), 0.25f));
  EXPECT_EQ(run.sites->visited(), 2u);
  EXPECT_EQ(run.factor(1), flat_like(V(3), Family::diagonal));
  EXPECT_EQ(run.prior_times_factors(), run.state.global);
}

TEST(DroppedClients, AllOfThemLeaveTheServerWhereItIs) {
  Phase phase = ep_phase(4);
  phase.server_optimizer = phase.factor_optimizer = {.momentum = 0.9};
  Federation run(whole_clients(), phase);
  run.play();
  const ServerState before = run.state;
  run.executor.lost = {0, 1, 2, 3};
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.dropped, 4u);
  EXPECT_EQ(run.state.global, before.global);
  EXPECT_EQ(run.state.optimizer, before.optimizer);
  EXPECT_EQ(run.state.round, before.round + 1);
}

// From a flat q the first grid reaches 2^16, so 1e12 has to wait for two coarser ones.
TEST(OutsideTheGrid, IsRefusedAndCountedAndTheNextGridIsCoarser) {
  GaussianClients clients = whole_clients();
  clients.add("large", 10, Message(V{1e12f, 0, 0}, V{1e12f, 1, 1}));
  Phase phase = ep_phase(5);
  phase.damping.rule = DampingRule::none;
  Federation run(clients, phase);
  const Message large = run.clients.likelihood(run.population[4].key);
  int exponent = -1000;
  int refusals = 0;
  for (RoundNumbers numbers = run.play(); numbers.outside_grid == 1; numbers = run.play()) {
    ++refusals;
    EXPECT_EQ(numbers.diverged, 0u);
    EXPECT_EQ(run.factor(4), flat_like(V(3), Family::diagonal));
    EXPECT_EQ(run.prior_times_factors(), run.state.global);
    EXPECT_EQ(run.executor.taken.size(), 4u);
    EXPECT_GT(run.executor.grid.eta_exponent, exponent);
    exponent = run.executor.grid.eta_exponent;
  }
  EXPECT_GE(refusals, 1);
  EXPECT_LE(refusals, 3);
  EXPECT_EQ(run.factor(4), large);
  EXPECT_EQ(run.state.grid.extra_bits, 0);
}

TEST(OutsideTheGrid, NanIsRefusedWithoutMakingTheGridCoarserForTheOthers) {
  for (const float bad : {NAN, INFINITY}) {
    GaussianClients clients = whole_clients();
    clients.add("broken", 10, Message(V{bad, 0, 0}, V{1, 1, 1}));
    for (const double clip : {0.0, 1000.0}) {
      Phase phase = ep_phase(5);
      phase.clip = clip;
      Federation run(clients, phase);
      for (int round = 0; round < 100; ++round) {
        const RoundNumbers numbers = run.play();
        EXPECT_EQ(numbers.outside_grid, 1u);
        EXPECT_EQ(numbers.diverged, 1u);
      }
      EXPECT_EQ(run.state.grid.extra_bits, 0);
      expect_near(run.state.global, whole_clients().posterior(run.state.prior), 1e-5);
    }
  }
}

// The grid follows the last aggregate, in which a client that is rarely asked has no part.
TEST(OutsideTheGrid, NoClientIsRefusedForEver) {
  Phase phase = ep_phase(1);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.5};
  Federation run(random_clients(30, Family::diagonal, 30), phase, with_prior(0, 1));
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) refused += run.play().outside_grid;
  EXPECT_LE(refused, 5u);
  expect_near(run.state.global, run.posterior(), 1e-4);
}

// One client says -10 where the prior says 1: the whole step would end at precision -9.
class GuardedRound : public testing::Test {
 protected:
  Federation run(GuardMode mode, Family family = Family::isotropic) const {
    GaussianClients clients;
    if (family == Family::isotropic) {
      clients.add("a", 10, Message(V{1, 2, 3}, -10.0f));
    } else {
      clients.add("a", 10, Message(V{1, 2, 3}, V{-10, 1, 1}));
    }
    Phase phase = ep_phase(1, family);
    phase.guard = {.mode = mode, .floor = 0.125};
    phase.server_optimizer.momentum = phase.factor_optimizer.momentum = 0.5;
    return Federation(clients, phase, with_prior(2, 1));
  }
};

TEST_F(GuardedRound, CountsAndDoesNothing) {
  Federation run = this->run(GuardMode::count);
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(numbers.guarded(), 1u);
  EXPECT_EQ(numbers.step_scale, 1);
  EXPECT_EQ(run.state.global.lambda_scalar(), -9);
  // The next cavity is q / q_k = the prior again; q itself is not proper, so nothing can be done
  // about it.
  EXPECT_EQ(run.play().answered, 1u);
}

TEST_F(GuardedRound, BacksOffInServerAndFactorsAlike) {
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    Federation run = this->run(GuardMode::back_off, family);
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_global, family == Family::isotropic ? 3u : 1u);
    EXPECT_DOUBLE_EQ(numbers.step_scale, std::pow(0.8, 11));  // the first below 1/10
    EXPECT_NEAR(run.state.global.lambda_span()[0], 1 - 10 * numbers.step_scale, 1e-6);
    EXPECT_NEAR(run.factor(0).lambda_span()[0], -10 * numbers.step_scale, 1e-6);
    expect_near(run.prior_times_factors(), run.state.global, 1e-6);
    for (int round = 0; round < 10; ++round) {
      run.play();
      EXPECT_TRUE(is_proper(run.state.global));
    }
  }
}

TEST_F(GuardedRound, FloorsAtTheOldMean) {
  Federation run = this->run(GuardMode::floor);
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(run.state.global, from_mean(V(3, 2), 0.125f));
}

TEST_F(GuardedRound, SkipsTheStepAsIfNobodyHadAnswered) {
  Federation run = this->run(GuardMode::skip);
  const ServerState before = run.state;
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(numbers.step_scale, 0);
  EXPECT_EQ(run.state.global, before.global);
  EXPECT_EQ(run.state.optimizer, before.optimizer);  // momentum has not seen the step either
  EXPECT_TRUE(run.executor.taken.empty());
  EXPECT_EQ(run.sites->visited(), 0u);
  EXPECT_EQ(run.prior_times_factors(), run.state.global);
}

TEST_F(GuardedRound, LeavesOutAClientWithAnImproperCavity) {
  for (const GuardMode mode : {GuardMode::skip, GuardMode::count}) {
    Phase phase = ep_phase(4);
    phase.guard.mode = mode;
    Federation run(whole_clients(), phase, with_prior(0, 1));
    const std::uint64_t key = run.population[2].key;
    run.sites->propose(key, 0, {.factor = Message(V(3), V{5, 0, 0}), .optimizer = {}});
    run.sites->settle(0, std::vector{key});
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_cavities, 1u);
    EXPECT_EQ(numbers.skipped, mode == GuardMode::skip ? 1u : 0u);
    EXPECT_EQ(numbers.answered, mode == GuardMode::skip ? 3u : 4u);
    EXPECT_EQ(numbers.dropped, 0u);
    EXPECT_EQ(run.executor.damping, 0.25);
  }
}

TEST(PlayRound, GoesOnWithoutAClientThatLies) {
  Federation honest(whole_clients(), ep_phase(4)), lied_to(whole_clients(), ep_phase(4));
  honest.executor.lost = {2};
  lied_to.executor.liars = {2};
  honest.play();
  const RoundNumbers numbers = lied_to.play();
  EXPECT_EQ(numbers.dropped, 1u);
  EXPECT_EQ(honest.state, lied_to.state);
  EXPECT_EQ(lied_to.factor(2), flat_like(V(3), Family::diagonal));
}

}  // namespace
}  // namespace fedep
