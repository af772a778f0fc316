#include "fedep/round/factor_clock.h"

#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/test_optimizer_laws.h"

namespace fedep {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, OptimizerLaws, OnHost);

const std::vector<double> kScales = {1, 0.25, 0, 1, 0.8, 0.512, 1, 1};

SiteState state_of(Family family, std::int64_t steps) {
  Stream stream({.seed = 3});
  SiteState state{.factor = flat_like(V(4), family), .optimizer = {.steps = steps, .slots = {}}};
  state.optimizer.slots.push_back(state.factor);
  for (Message* message : {&state.factor, &state.optimizer.slots[0]}) {
    for (float& x : message->eta().span()) x = float(stream.normal());
    for (float& x : message->lambda_span()) x = float(stream.normal());
  }
  return state;
}

TEST(FactorClock, CatchingUpIsEveryMissedStepWithoutADelta) {
  const OptimizerSettings optimizer{.lr = 0.3, .momentum = 0.9};
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    for (const std::int64_t since : {0, 3, 7, 8}) {
      SiteState at_once = state_of(family, since), stepwise = at_once;
      for (std::size_t t = std::size_t(since); t < kScales.size(); ++t) {
        advance(optimizer, stepwise.optimizer, stepwise.factor, flat_like(V(4), family),
                kScales[t]);
      }
      catch_up(optimizer, kScales, at_once);
      expect_near(at_once.factor, stepwise.factor, 1e-6);
      expect_near(at_once.optimizer.slots[0], stepwise.optimizer.slots[0], 1e-6);
      EXPECT_EQ(at_once.optimizer.steps, 8);
      EXPECT_EQ(stepwise.optimizer.steps, 8);
    }
  }
}

TEST(FactorClock, WhoMissedNothingStaysInEveryBit) {
  const SiteState before = state_of(Family::diagonal, 8);
  SiteState after = before;
  catch_up({.lr = 0.3, .momentum = 0.9}, kScales, after);
  EXPECT_EQ(after, before);
}

TEST(FactorClock, AStateThatIsAheadOfTheServerOrHasNoMomentumIsRefused) {
  const OptimizerSettings optimizer{.lr = 0.3, .momentum = 0.9};
  SiteState ahead = state_of(Family::diagonal, 9);
  EXPECT_THROW(catch_up(optimizer, kScales, ahead), InputError);
  SiteState without = state_of(Family::diagonal, 2);
  without.optimizer.slots.clear();
  EXPECT_THROW(catch_up(optimizer, kScales, without), InputError);
}

TEST(FactorClock, ASettledStepIsTheOneThatAServerMakesOfItsPart) {
  const OptimizerSettings optimizer{.lr = 0.3, .momentum = 0.9};
  const Message delta = state_of(Family::diagonal, 0).optimizer.slots[0];
  Phase phase;
  phase.factor_optimizer = optimizer;
  for (const StepPart part : {StepPart{}, StepPart{.kept = 0.64}, StepPart{.renormalised = 2.5},
                              StepPart{.renormalised = 2.5, .kept = 0.64}}) {
    const SiteState before = state_of(Family::diagonal, 3);
    SiteState proposed = before, expected = before;
    advance(optimizer, proposed.optimizer, proposed.factor, delta, 0.7);
    settle_on_clock(clocked_step(phase, 0.7, part), before, proposed);
    advance(optimizer, expected.optimizer, expected.factor, power(delta, float(part.renormalised)),
            0.7 * part.kept);
    expect_near(proposed.factor, expected.factor, 1e-6);
    expect_near(proposed.optimizer.slots[0], expected.optimizer.slots[0], 1e-6);
  }
}

// A visit that the server does not take leaves the client where it was, also if it had caught up.
TEST(FactorClock, WhoseAnswerIsNotTakenKeepsWhatItHad) {
  Phase phase = ep_phase(5);
  phase.clock = FactorClock::round;
  phase.server_optimizer = phase.factor_optimizer = {.lr = 0.3, .momentum = 0.9};
  Federation<OnHost> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
  run.play(3);
  const std::uint64_t key = run.population[2].key;
  const std::optional<SiteState> before = run.sites().get(key);
  run.parts().executor.liars = {2};
  run.play(2);
  EXPECT_EQ(run.sites().get(key), before);
  EXPECT_EQ(before->optimizer.steps, 3);
  expect_near(run.prior_times_factors(), run.global(), 5e-6);
}

}  // namespace
}  // namespace fedep
