// Rounds in which something goes wrong, wherever messages live: clients that drop out, updates outside
// the grid, steps and cavities that the guard does not let pass, inference that fails.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fedep/round/test_federation.h"

namespace fedep {

template <class Where>
class RoundFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Where::problem(); !why.empty()) GTEST_SKIP() << why;
  }

  // One client says -10 where the prior says 1: the whole step would end at precision -9.
  Federation<Where> improper_step(GuardMode mode, Family family = Family::isotropic) const {
    GaussianClients clients;
    if (family == Family::isotropic) {
      clients.add("a", 10, Message(V{1, 2, 3}, -10.0f));
    } else {
      clients.add("a", 10, Message(V{1, 2, 3}, V{-10, 1, 1}));
    }
    Phase phase = ep_phase(1, family);
    phase.guard = {.mode = mode, .floor = 0.125};
    phase.server_optimizer.momentum = phase.factor_optimizer.momentum = 0.5;
    return Federation<Where>(clients, phase, with_prior(2, 1));
  }
};
TYPED_TEST_SUITE_P(RoundFaults);

TYPED_TEST_P(RoundFaults, DroppedClientsLeaveDampingAndTheirOwnFactorsUnchanged) {
  Federation<TypeParam> run(whole_clients(), ep_phase(4));
  run.executor.lost = {1, 3};
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.asked, 4u);
  EXPECT_EQ(numbers.answered, 2u);
  EXPECT_EQ(numbers.dropped, 2u);
  EXPECT_EQ(run.executor.damping, 0.25);  // of those asked, not of those that answered
  EXPECT_EQ(run.global(), power(product(run.likelihood(0), run.likelihood(2)), 0.25f));
  EXPECT_EQ(run.sites().visited(), 2u);
  EXPECT_EQ(run.factor(1), flat_like(V(3), Family::diagonal));
  EXPECT_EQ(run.prior_times_factors(), run.global());
}

TYPED_TEST_P(RoundFaults, AllClientsDroppedLeaveTheServerWhereItIs) {
  Phase phase = ep_phase(4);
  phase.server_optimizer = phase.factor_optimizer = {.momentum = 0.9};
  Federation<TypeParam> run(whole_clients(), phase);
  run.play();
  const ServerState before = run.state();
  run.executor.lost = {0, 1, 2, 3};
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.dropped, 4u);
  EXPECT_EQ(run.global(), before.global);
  EXPECT_EQ(run.state().optimizer, before.optimizer);
  EXPECT_EQ(run.state().round, before.round + 1);
}

// From a flat q the first grid reaches 2^16, so 1e12 has to wait for two coarser ones.
TYPED_TEST_P(RoundFaults, OutsideTheGridIsRefusedAndCountedAndTheNextGridIsCoarser) {
  GaussianClients clients = whole_clients();
  clients.add("large", 10, Message(V{1e12f, 0, 0}, V{1e12f, 1, 1}));
  Phase phase = ep_phase(5);
  phase.damping.rule = DampingRule::none;
  Federation<TypeParam> run(clients, phase);
  int exponent = -1000;
  int refusals = 0;
  for (RoundNumbers numbers = run.play(); numbers.outside_grid == 1; numbers = run.play()) {
    ++refusals;
    EXPECT_EQ(numbers.diverged, 0u);
    EXPECT_EQ(run.factor(4), flat_like(V(3), Family::diagonal));
    EXPECT_EQ(run.prior_times_factors(), run.global());
    EXPECT_EQ(run.executor.taken.size(), 4u);
    EXPECT_GT(run.executor.grid.eta_exponent, exponent);
    exponent = run.executor.grid.eta_exponent;
  }
  EXPECT_GE(refusals, 1);
  EXPECT_LE(refusals, 3);
  EXPECT_EQ(run.factor(4), run.likelihood(4));
  EXPECT_EQ(run.state().grid.extra_bits, 0);
}

TYPED_TEST_P(RoundFaults, NanIsRefusedWithoutMakingTheGridCoarserForTheOthers) {
  for (const float bad : {NAN, INFINITY}) {
    GaussianClients clients = whole_clients();
    clients.add("broken", 10, Message(V{bad, 0, 0}, V{1, 1, 1}));
    for (const double clip : {0.0, 1000.0}) {
      Phase phase = ep_phase(5);
      phase.clip = clip;
      Federation<TypeParam> run(clients, phase);
      for (int round = 0; round < 100; ++round) {
        const RoundNumbers numbers = run.play();
        EXPECT_EQ(numbers.outside_grid, 1u);
        EXPECT_EQ(numbers.diverged, 1u);
      }
      EXPECT_EQ(run.state().grid.extra_bits, 0);
      expect_near(run.global(), whole_clients().posterior(run.state().prior), 1e-5);
    }
  }
}

// The grid follows the last aggregate, in which a client that is rarely asked has no part.
TYPED_TEST_P(RoundFaults, NoClientIsOutsideTheGridForEver) {
  Phase phase = ep_phase(1);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.5};
  Federation<TypeParam> run(random_clients(30, Family::diagonal, 30), phase, with_prior(0, 1));
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) refused += run.play().outside_grid;
  EXPECT_LE(refused, 5u);
  expect_near(run.global(), run.posterior(), 1e-4);
}

TYPED_TEST_P(RoundFaults, AGuardThatCountsDoesNothingElse) {
  auto run = this->improper_step(GuardMode::count);
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(numbers.guarded(), 1u);
  EXPECT_EQ(numbers.step_scale, 1);
  EXPECT_EQ(run.global().lambda_scalar(), -9);
  // The next cavity is q / q_k, the prior again: proper, though q is not.
  const RoundNumbers next = run.play();
  EXPECT_EQ(next.answered, 1u);
  EXPECT_EQ(next.improper_cavities, 0u);
}

// docs/files.md: clients whose cavity had a precision that was not positive.
TYPED_TEST_P(RoundFaults, ImproperCavitiesAreCountedAlsoWhileQIsImproper) {
  for (const GuardMode mode : {GuardMode::count, GuardMode::skip}) {
    for (const Family family : {Family::isotropic, Family::diagonal}) {
      const bool isotropic = family == Family::isotropic;
      GaussianClients clients;
      for (const char* id : {"a", "b"}) {
        clients.add(id, 10,
                    isotropic ? Message(V{1, 2, 3}, -10.0f) : Message(V{1, 2, 3}, V{-10, 1, 1}));
      }
      Phase phase = ep_phase(2, family);
      phase.guard.mode = GuardMode::count;
      phase.damping.rule = DampingRule::none;
      Federation<TypeParam> run(clients, phase, with_prior(0, 1));
      EXPECT_EQ(run.play().improper_cavities, 0u);  // q is the prior, and so are cavities
      run.phase.guard.mode = mode;
      const RoundNumbers numbers = run.play();  // q has -19 now, cavities -9
      EXPECT_EQ(numbers.improper_cavities, 2u);
      EXPECT_EQ(numbers.skipped, 0u);  // nothing can be done about it
    }
  }
}

TYPED_TEST_P(RoundFaults, AFlatStartIsNotCountedAsImproper) {
  for (const Phase& phase : {ep_phase(4), sep_phase(4, ShareRule::equal)}) {
    Federation<TypeParam> run(whole_clients(), phase);
    EXPECT_EQ(run.play().guarded(), 0u);
  }
}

TYPED_TEST_P(RoundFaults, AGuardThatBacksOffDoesSoInServerAndFactorsAlike) {
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    auto run = this->improper_step(GuardMode::back_off, family);
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_global, family == Family::isotropic ? 3u : 1u);
    EXPECT_DOUBLE_EQ(numbers.step_scale, std::pow(0.8, 11));  // the first below 1/10
    EXPECT_NEAR(run.global().lambda_span()[0], 1 - 10 * numbers.step_scale, 1e-6);
    EXPECT_NEAR(run.factor(0).lambda_span()[0], -10 * numbers.step_scale, 1e-6);
    expect_near(run.prior_times_factors(), run.global(), 1e-6);
    for (int round = 0; round < 10; ++round) {
      run.play();
      EXPECT_TRUE(is_proper(run.global()));
    }
  }
}

TYPED_TEST_P(RoundFaults, AGuardThatFloorsDoesSoAtTheOldMean) {
  auto run = this->improper_step(GuardMode::floor);
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(run.global(), from_mean(V(3, 2), 0.125f));
}

TYPED_TEST_P(RoundFaults, AGuardThatSkipsTheStepLeavesAllAsIfNobodyHadAnswered) {
  auto run = this->improper_step(GuardMode::skip);
  const ServerState before = run.state();
  const RoundNumbers numbers = run.play();
  EXPECT_EQ(numbers.improper_global, 3u);
  EXPECT_EQ(numbers.step_scale, 0);
  EXPECT_EQ(run.global(), before.global);
  EXPECT_EQ(run.state().optimizer, before.optimizer);  // momentum has not seen the step either
  EXPECT_TRUE(run.executor.taken.empty());
  EXPECT_EQ(run.sites().visited(), 0u);
  EXPECT_EQ(run.prior_times_factors(), run.global());
}

TYPED_TEST_P(RoundFaults, AGuardThatSkipsLeavesOutAClientWithAnImproperCavity) {
  for (const GuardMode mode : {GuardMode::skip, GuardMode::count}) {
    Phase phase = ep_phase(4);
    phase.guard.mode = mode;
    Federation<TypeParam> run(whole_clients(), phase, with_prior(0, 1));
    run.give(2, Message(V(3), V{5, 0, 0}));
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_cavities, 1u);
    EXPECT_EQ(numbers.skipped, mode == GuardMode::skip ? 1u : 0u);
    EXPECT_EQ(numbers.answered, mode == GuardMode::skip ? 3u : 4u);
    EXPECT_EQ(numbers.dropped, 0u);
    EXPECT_EQ(run.executor.damping, 0.25);
    if (mode == GuardMode::skip) {
      EXPECT_EQ(run.factor(2), Message(V(3), V{5, 0, 0}));
    }
  }
}

// A guarded client replaces just its own part: its delta is the tilted distribution over the guarded
// cavity times what was to be taken out.
TYPED_TEST_P(RoundFaults, AGuardedCavitysDeltaIsDividedByWhatItStoodFor) {
  Phase phase = ep_phase(1);
  phase.guard = {.mode = GuardMode::floor, .floor = 0.5};
  phase.damping.rule = DampingRule::none;
  GaussianClients clients;
  clients.add("a", 10, Message(V{1, 2, 3}, V{4, 5, 6}));
  Federation<TypeParam> run(clients, phase, with_prior(0, 8));
  const Message factor(V{2, 0, 1}, V{9, 1, 2});  // takes more than the 8 there are
  run.give(0, factor);
  const Message q = run.global();
  run.play();
  const Message wanted = quotient(q, factor);
  Message guarded = wanted;
  raise_to_floor(q, guarded, 0.5f);
  const Message tilted = product(guarded, run.likelihood(0));
  const Message delta = quotient(tilted, product(guarded, factor));
  expect_near(run.global(), product(q, delta), 1e-6);
  expect_near(run.factor(0), product(factor, delta), 1e-6);
}

TYPED_TEST_P(RoundFaults, AnErrorNamesRoundClientAndStage) {
  Phase phase = ep_phase(1);
  GaussianClients clients;
  clients.add("a", 10, Message(V{1, 2}, V{4, 5}));  // of another size than q
  Federation<TypeParam> run(clients, phase, with_prior(0, 1));
  try {
    run.play();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).find("round 1, client a, local inference: "), 0u)
        << error.what();
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    RoundFaults, DroppedClientsLeaveDampingAndTheirOwnFactorsUnchanged,
    AllClientsDroppedLeaveTheServerWhereItIs,
    OutsideTheGridIsRefusedAndCountedAndTheNextGridIsCoarser,
    NanIsRefusedWithoutMakingTheGridCoarserForTheOthers, NoClientIsOutsideTheGridForEver,
    AGuardThatCountsDoesNothingElse, ImproperCavitiesAreCountedAlsoWhileQIsImproper,
    AFlatStartIsNotCountedAsImproper, AGuardThatBacksOffDoesSoInServerAndFactorsAlike,
    AGuardThatFloorsDoesSoAtTheOldMean, AGuardThatSkipsTheStepLeavesAllAsIfNobodyHadAnswered,
    AGuardThatSkipsLeavesOutAClientWithAnImproperCavity,
    AGuardedCavitysDeltaIsDividedByWhatItStoodFor, AnErrorNamesRoundClientAndStage);

}  // namespace fedep
