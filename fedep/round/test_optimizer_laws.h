// What rounds reach with every optimizer of the server where only some of the clients are asked, and
// the laws of factors on the server's clock (factor_clock.h). Instantiated where test_round_laws.h is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/test_federation.h"

namespace fedep {

template <class Where>
class OptimizerLaws : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Where::problem(); !why.empty()) GTEST_SKIP() << why;
  }
};
TYPED_TEST_SUITE_P(OptimizerLaws);

inline Phase momentum_phase(std::size_t asked, FactorClock clock, double momentum = 0.9,
                            Family family = Family::diagonal) {
  Phase phase = ep_phase(asked, family);
  phase.clock = clock;
  phase.server_optimizer = phase.factor_optimizer = {.lr = 0.3, .momentum = momentum};
  return phase;
}

template <class Where>
FactorGap gap_of(Federation<Where>& run) {
  return factor_gap(run.state(), run.phase, run.population, run.sites());
}

// Whether every factor is its client's likelihood.
template <class Where>
void expect_exact_factors(Federation<Where>& run, double relative) {
  for (std::size_t k = 0; k < run.population.size(); ++k) {
    expect_near(run.factor(k), run.likelihood(k), relative);
  }
}

TYPED_TEST_P(OptimizerLaws, OnTheServersClockTheGlobalIsPriorTimesFactorsHoweverFewAreAsked) {
  for (const double momentum : {0.5, 0.9}) {
    for (const std::size_t asked : {1u, 2u, 4u}) {
      for (const Family family : {Family::diagonal, Family::isotropic}) {
        Federation<TypeParam> run(random_clients(5, family),
                                  momentum_phase(asked, FactorClock::round, momentum, family),
                                  with_prior(0.5, 2));
        for (int round = 0; round < 60; ++round) {
          run.play();
          expect_near(run.prior_times_factors(), run.global(), 5e-6);
        }
        EXPECT_LT(gap_of(run).eta, 1e-5);
        EXPECT_LT(gap_of(run).lambda, 1e-5);
      }
    }
  }
}

TYPED_TEST_P(OptimizerLaws, SoItIsWithEveryScaleOfSteps) {
  const RoundSchedule cosine{.kind = ScheduleKind::cosine, .after = 5, .rounds = 20, .to = 0.1};
  for (const DampingRule rule : {DampingRule::one_over_k, DampingRule::decaying}) {
    for (const FactorStart start : {FactorStart::flat, FactorStart::carry_mean}) {
      Phase phase = momentum_phase(2, FactorClock::round);
      phase.damping = {.rule = rule, .outside = true};
      if (rule == DampingRule::decaying) {
        phase.schedule.server_rate = cosine;
      } else {
        phase.cooldown = CooldownSettings{.after = 5, .rounds = 20, .to = 0.1};
      }
      phase.factors = start;
      Federation<TypeParam> run(random_clients(6, Family::diagonal), phase, with_prior(0.5, 2),
                                V{0.5f, -1, 2});
      for (int round = 0; round < 40; ++round) {
        run.play();
        expect_near(run.prior_times_factors(), run.global(), 5e-6);
      }
    }
  }
}

// Weights are shares of those that answered: the server steps by r Σ d, and so does every v_k.
TYPED_TEST_P(OptimizerLaws, SoItIsWhereAnswersAreMissingAndTheOthersAreSharedOutAgain) {
  Phase phase = momentum_phase(3, FactorClock::round);
  phase.weight = WeightRule::examples;
  phase.damping.rule = DampingRule::none;
  Federation<TypeParam> run(random_clients(6, Family::diagonal), phase, with_prior(0.5, 2));
  std::size_t missing = 0;
  for (int round = 0; round < 40; ++round) {
    run.executor.lost = {std::size_t(round) % 6, std::size_t(round + 1) % 6};
    missing += run.play().dropped;
    expect_near(run.prior_times_factors(), run.global(), 5e-6);
  }
  EXPECT_GT(missing, 20u);
}

// Likelihoods that take precision away: momentum overshoots, and the guard has something to do.
inline GaussianClients contradicting_clients() {
  GaussianClients clients;
  clients.add("a", 10, Message(V{1, -2, 3}, V{4, 1, 2}));
  clients.add("b", 20, Message(V{-2, 1, 0}, V{-4.5f, 3, 1}));
  clients.add("c", 30, Message(V{0, 1, 2}, V{-0.5f, -3.9f, 2}));
  return clients;
}

TYPED_TEST_P(OptimizerLaws, SoItIsWhereTheGuardKeepsAPartOfAStepOrNothing) {
  for (const GuardMode mode : {GuardMode::back_off, GuardMode::skip}) {
    Phase phase = momentum_phase(2, FactorClock::round);
    phase.damping.rule = DampingRule::none;
    phase.guard.mode = mode;
    Federation<TypeParam> run(contradicting_clients(), phase, with_prior(0, 1));
    std::size_t guarded = 0, steps = 0;
    for (int round = 0; round < 40; ++round) {
      const RoundNumbers numbers = run.play();
      guarded += numbers.step_scale < 1;
      steps += numbers.step_scale > 0 && numbers.answered > 0;
      expect_near(run.prior_times_factors(), run.global(), 2e-5);
      EXPECT_EQ(run.state().step_scales.size(), steps);
    }
    EXPECT_GT(guarded, 0u);
  }
}

TYPED_TEST_P(OptimizerLaws, RoundsWithoutAnswersDoNotMoveTheServersClock) {
  Federation<TypeParam> run(random_clients(4, Family::diagonal),
                            momentum_phase(2, FactorClock::round), with_prior(0.5, 2));
  run.play(5);
  ASSERT_EQ(run.state().step_scales, std::vector<double>(5, 1.0));
  const Message before = run.global();
  run.executor.lost = {0, 1, 2, 3};
  run.play(3);
  EXPECT_EQ(run.global(), before);
  EXPECT_EQ(run.state().step_scales.size(), 5u);
  run.executor.lost = {};
  run.play(2);
  EXPECT_EQ(run.state().step_scales.size(), 7u);
  expect_near(run.prior_times_factors(), run.global(), 5e-6);
}

TYPED_TEST_P(OptimizerLaws, WhereAllAreAskedBothClocksTellTheSameTime) {
  Federation<TypeParam> visits(random_clients(5, Family::diagonal),
                               momentum_phase(5, FactorClock::visit), with_prior(0.5, 2));
  Federation<TypeParam> rounds(random_clients(5, Family::diagonal),
                               momentum_phase(5, FactorClock::round), with_prior(0.5, 2));
  for (int round = 0; round < 20; ++round) {
    visits.play();
    rounds.play();
    EXPECT_EQ(visits.global(), rounds.global());
    for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(visits.factor(k), rounds.factor(k));
  }
}

// δ lr / (1 - m), what in the end comes of a delta, is at most a half.
inline Phase patient_phase(std::size_t asked, FactorClock clock) {
  Phase phase = momentum_phase(asked, clock);
  phase.server_optimizer.lr = phase.factor_optimizer.lr = 0.05;
  return phase;
}

TYPED_TEST_P(OptimizerLaws, WithMomentumOnTheServersClockTheExactPosteriorIsReached) {
  for (const std::size_t asked : {1u, 2u, 5u}) {
    Federation<TypeParam> run(random_clients(5, Family::diagonal),
                              patient_phase(asked, FactorClock::round), with_prior(0.5, 2));
    run.play(1500);
    expect_near(run.global(), run.posterior(), 5e-5);
    expect_exact_factors(run, 5e-5);
  }
}

// Deltas are p_k / q_k here, so factors find their likelihoods whatever q is. Of a delta the server and
// the client make the same in the end, the server earlier: until nothing moves they are apart.
TYPED_TEST_P(OptimizerLaws, WithMomentumOnVisitsItIsReachedButTheGlobalIsNotTheProductUntilThen) {
  for (const std::size_t asked : {1u, 2u}) {
    Federation<TypeParam> run(random_clients(5, Family::diagonal),
                              patient_phase(asked, FactorClock::visit), with_prior(0.5, 2));
    double largest_eta = 0, largest_lambda = 0;
    for (int round = 0; round < 100; ++round) {
      run.play();
      largest_eta = std::max(largest_eta, gap_of(run).eta);
      largest_lambda = std::max(largest_lambda, gap_of(run).lambda);
    }
    EXPECT_GT(largest_eta, 0.1);
    EXPECT_GT(largest_lambda, 0.1);
    run.play(1400);
    expect_near(run.global(), run.posterior(), 5e-5);
    expect_exact_factors(run, 5e-5);
  }
}

// Where steps have become shorter by the time the client makes its part, q keeps the difference.
TYPED_TEST_P(OptimizerLaws, WithMomentumOnVisitsAndACooldownItIsNotReached) {
  for (const FactorClock clock : {FactorClock::visit, FactorClock::round}) {
    Phase phase = patient_phase(2, clock);
    phase.cooldown = CooldownSettings{.after = 10, .rounds = 40, .to = 0.1};
    Federation<TypeParam> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
    run.play(6000);
    expect_exact_factors(run, 2e-4);
    const double gap = std::max(gap_of(run).eta, gap_of(run).lambda);
    if (clock == FactorClock::visit) {
      EXPECT_GT(gap, 0.02);
    } else {
      EXPECT_LT(gap, 5e-4);
    }
  }
}

// Their steps do not add up: the server's of a sum is not the sum of the clients', even where all are
// asked. Adam's never quite end, since its second moment forgets.
TYPED_TEST_P(OptimizerLaws, WithOtherOptimizersFactorsAreExactButTheGlobalIsNotTheirProduct) {
  std::size_t tried = 0;
  for (const Optimizer& optimizer : optimizers()) {
    if (optimizer.name == "sgd") continue;
    ++tried;
    for (const std::size_t asked : {2u, 5u}) {
      Phase phase = ep_phase(asked);
      phase.server_optimizer =
          phase.factor_optimizer = {.name = std::string(optimizer.name), .lr = 0.2};
      Federation<TypeParam> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
      run.play(2000);
      expect_exact_factors(run, optimizer.name == "adam" ? 0.03 : 1e-4);
      EXPECT_GT(gap_of(run).eta, 0.01) << optimizer.name;
      EXPECT_GT(gap_of(run).lambda, 0.3) << optimizer.name;
    }
  }
  EXPECT_GE(tried, 3u);
}

REGISTER_TYPED_TEST_SUITE_P(OptimizerLaws,
                            OnTheServersClockTheGlobalIsPriorTimesFactorsHoweverFewAreAsked,
                            SoItIsWithEveryScaleOfSteps,
                            SoItIsWhereAnswersAreMissingAndTheOthersAreSharedOutAgain,
                            SoItIsWhereTheGuardKeepsAPartOfAStepOrNothing,
                            RoundsWithoutAnswersDoNotMoveTheServersClock,
                            WhereAllAreAskedBothClocksTellTheSameTime,
                            WithMomentumOnTheServersClockTheExactPosteriorIsReached,
                            WithMomentumOnVisitsItIsReachedButTheGlobalIsNotTheProductUntilThen,
                            WithMomentumOnVisitsAndACooldownItIsNotReached,
                            WithOtherOptimizersFactorsAreExactButTheGlobalIsNotTheirProduct);

}  // namespace fedep
