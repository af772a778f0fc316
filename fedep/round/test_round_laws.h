// The laws of a round, wherever its messages live: where rounds end, what they keep, and what they
// count. Instantiated in play_round_test.cpp for main memory and in sim/gpu/cuda_round_laws_test.cpp
// for a GPU.
#pragma once

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "fedep/round/test_federation.h"

namespace fedep {

template <class Where>
class RoundLaws : public testing::Test {
 protected:
  using Run = Federation<Where>;

  void SetUp() override {
    if (const std::string why = Where::problem(); !why.empty()) GTEST_SKIP() << why;
  }
};
TYPED_TEST_SUITE_P(RoundLaws);

struct EpCase {
  DampingSettings damping;
  std::size_t clients;
  std::size_t asked;
  FactorStart start = FactorStart::flat;
  double lr = 1;
  double prior = 0;
};

inline std::vector<EpCase> ep_cases() {
  return {{{.rule = DampingRule::one_over_k}, 5, 5},
          {{.rule = DampingRule::one_over_k}, 6, 2},
          {{.rule = DampingRule::one_over_k, .outside = true}, 5, 5},
          {{.rule = DampingRule::constant, .constant = 0.5}, 7, 3},
          {{.rule = DampingRule::constant, .constant = 0.5, .outside = true}, 7, 3},
          {{.rule = DampingRule::none}, 3, 2},
          {{.rule = DampingRule::none}, 3, 3},
          {{.rule = DampingRule::decaying}, 5, 5},
          {{.rule = DampingRule::decaying, .outside = true}, 6, 4},
          {{.rule = DampingRule::one_over_k}, 5, 5, FactorStart::carry_mean, 0.5},
          {{.rule = DampingRule::constant, .constant = 0.5}, 5, 2, FactorStart::carry_mean, 1, 2},
          {{.rule = DampingRule::one_over_k}, 4, 1, FactorStart::flat, 1, 2}};
}

template <class Where>
Federation<Where> federation(const EpCase& c, Family family, int bits = 64) {
  Phase phase = ep_phase(c.asked, family);
  phase.damping = c.damping;
  phase.factors = c.start;
  phase.grid_bits = bits;
  phase.server_optimizer.lr = phase.factor_optimizer.lr = c.lr;
  return Federation<Where>(random_clients(c.clients, family), phase,
                           c.prior > 0 ? with_prior(0.5, c.prior) : ServerSettings{},
                           V{0.5f, -1, 2});
}

TYPED_TEST_P(RoundLaws, EpReachesTheExactPosterior) {
  for (const EpCase& c : ep_cases()) {
    for (const Family family : {Family::diagonal, Family::isotropic}) {
      auto run = federation<TypeParam>(c, family);
      run.play(300);
      expect_near(run.global(), run.posterior(), 1e-5);
      for (std::size_t k = 0; k < run.population.size(); ++k) {
        expect_near(run.factor(k), run.likelihood(k), 1e-5);
      }
    }
  }
}

TYPED_TEST_P(RoundLaws, EpReachesItOnA32BitGridToItsResolution) {
  for (const EpCase& c : ep_cases()) {
    auto run = federation<TypeParam>(c, Family::diagonal, 32);
    run.play(300);
    EXPECT_EQ(run.executor.grid.bits, 32);
    expect_near(run.global(), run.posterior(), 1e-4);
  }
}

TYPED_TEST_P(RoundLaws, PriorTimesFactorsIsTheGlobal) {
  for (const EpCase& c : ep_cases()) {
    for (const Family family : {Family::diagonal, Family::isotropic}) {
      auto run = federation<TypeParam>(c, family);
      for (int round = 0; round < 40; ++round) {
        run.play();
        expect_near(run.prior_times_factors(), run.global(), 2e-6);
      }
    }
  }
}

TYPED_TEST_P(RoundLaws, PriorTimesFactorsIsTheGlobalInEveryBitWhereNumbersAreExact) {
  for (const bool outside : {false, true}) {
    Phase phase = ep_phase(3);
    phase.damping = {.rule = DampingRule::constant, .constant = 0.5, .outside = outside};
    Federation<TypeParam> run(whole_clients(), phase, with_prior(0.5, 4));
    for (int round = 0; round < 6; ++round) {
      run.play();
      EXPECT_EQ(run.prior_times_factors(), run.global());
    }
  }
}

TYPED_TEST_P(RoundLaws, PriorTimesFactorsIsTheGlobalAlsoWhereDeltasAreClipped) {
  for (const bool outside : {false, true}) {
    for (const Family family : {Family::diagonal, Family::isotropic}) {
      Phase phase = ep_phase(3, family);
      phase.clip = 0.25;
      phase.damping.outside = outside;
      Federation<TypeParam> run(random_clients(5, family), phase, with_prior(0.5, 2));
      std::size_t clipped = 0;
      for (int round = 0; round < 60; ++round) {
        clipped += run.play().clipped;
        expect_near(run.prior_times_factors(), run.global(), 2e-6);
      }
      EXPECT_GT(clipped, 20u);
    }
  }
}

// Weights are shares of those that answered, refused answers move nobody's factor, and the others'
// move by what the server makes of them.
TYPED_TEST_P(RoundLaws, WeightsByExamplesMoveFactorsAndServerAlikeWhoeverIsMissing) {
  GaussianClients clients = random_clients(4, Family::diagonal);
  clients.add("broken", 25, Message(V{NAN, 0, 0}, V{1, 1, 1}));
  clients.add("large", 25, Message(V{1e12f, 0, 0}, V{1e12f, 1, 1}));  // for the first grids
  Phase phase = ep_phase(6);
  phase.weight = WeightRule::examples;
  phase.damping.rule = DampingRule::none;
  Federation<TypeParam> run(clients, phase, with_prior(0, 1));
  std::size_t too_large = 0;
  for (int round = 0; round < 20; ++round) {
    run.executor.lost = {std::size_t(round) % 4};
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.diverged, 1u);
    EXPECT_EQ(numbers.dropped, 1u);
    EXPECT_EQ(numbers.answered + numbers.outside_grid, 5u);
    too_large += numbers.too_large();
    expect_near(run.prior_times_factors(), run.global(), 2e-6);
    EXPECT_EQ(run.factor(4), flat_like(V(3), Family::diagonal));
  }
  EXPECT_GT(too_large, 0u);
  EXPECT_GT(run.factor(5).eta()[0], 1e11f);  // in the end its answers were taken
}

TYPED_TEST_P(RoundLaws, UndampedEpFindsExactFactorsInOneVisitAndStaysThere) {
  Phase phase = ep_phase(4);
  phase.damping.rule = DampingRule::none;
  Federation<TypeParam> run(whole_clients(), phase);
  run.play();
  EXPECT_EQ(run.global(), run.posterior());
  const Message found = run.global();
  run.play(3);
  EXPECT_EQ(run.global(), found);
}

inline std::vector<OptimizerSettings> every_optimizer() {
  std::vector<OptimizerSettings> all;
  for (const Optimizer& optimizer : optimizers()) {
    all.push_back({.name = std::string(optimizer.name), .lr = 0.2});
  }
  all.push_back({.name = "sgd", .lr = 0.2, .momentum = 0.9});
  return all;
}

// Whatever the optimizer makes of deltas, there are none once every factor is its likelihood; and a
// client's optimizer counts its own visits, not the rounds.
TYPED_TEST_P(RoundLaws, TheExactPosteriorIsAFixedPointOfEveryOptimizerHoweverFewAreAsked) {
  for (const OptimizerSettings& optimizer : every_optimizer()) {
    for (const std::size_t asked : {1u, 3u, 4u}) {
      Phase phase = ep_phase(asked);
      phase.server_optimizer = phase.factor_optimizer = optimizer;
      // Nobody has anything to add to the prior, so it is the posterior, and factors are flat.
      GaussianClients silent;
      for (const char* id : {"a", "b", "c", "d", "e"}) {
        silent.add(id, 10, flat_like(V(3), Family::diagonal));
      }
      std::vector<int> visits(5, 0);
      Federation<TypeParam> still(silent, phase, with_prior(2, 1));
      const Message before = still.global();
      for (int round = 0; round < 8; ++round) {
        still.play();
        for (const std::size_t client : still.executor.taken) ++visits[client];
      }
      EXPECT_EQ(still.global(), before) << optimizer.name;
      for (std::size_t k = 0; k < visits.size(); ++k) {
        EXPECT_EQ(still.factor(k), flat_like(V(3), Family::diagonal));
        const auto site = still.sites().get(still.population[k].key);
        EXPECT_EQ(site ? site->optimizer.steps : 0, visits[k]) << optimizer.name;
      }
    }
  }
}

// Steps of SGD are sums of deltas, with momentum too if everybody moves in every round.
TYPED_TEST_P(RoundLaws, LinearOptimizersKeepTheProductWhereAllAreAsked) {
  for (const double momentum : {0.0, 0.5, 0.9}) {
    Phase phase = ep_phase(5);
    phase.server_optimizer = phase.factor_optimizer = {.lr = 0.3, .momentum = momentum};
    Federation<TypeParam> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
    for (int round = 0; round < 30; ++round) {
      run.play();
      expect_near(run.prior_times_factors(), run.global(), 5e-6);
    }
  }
}

TYPED_TEST_P(RoundLaws, ACooldownLeavesAPartOfTheStep) {
  for (const double part : {0.0, 0.25, 1.0}) {
    Phase phase = ep_phase(4);
    const Federation<TypeParam> before(whole_clients(), phase, with_prior(0, 4));
    Federation<TypeParam> whole(whole_clients(), phase, with_prior(0, 4));
    phase.cooldown = CooldownSettings{.to = part};
    Federation<TypeParam> cooled(whole_clients(), phase, with_prior(0, 4));
    whole.play();
    cooled.play();
    expect_near(quotient(cooled.global(), before.global()),
                power(quotient(whole.global(), before.global()), float(part)), 1e-6);
  }
}

TYPED_TEST_P(RoundLaws, ACooldownKeepsPriorTimesFactorsEqualToTheGlobal) {
  Phase phase = ep_phase(2);
  phase.cooldown = CooldownSettings{.after = 5, .rounds = 10};
  Federation<TypeParam> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
  for (int round = 0; round < 20; ++round) {
    run.play();
    expect_near(run.prior_times_factors(), run.global(), 2e-6);
  }
}

TYPED_TEST_P(RoundLaws, SepReachesTheExactPosteriorWhenAllAreAsked) {
  for (const ShareRule share : {ShareRule::examples, ShareRule::equal}) {
    for (const double prior : {0.0, 3.0}) {
      for (const FactorStart start : {FactorStart::flat, FactorStart::carry_mean}) {
        Phase phase = sep_phase(5, share);
        phase.factors = start;
        Federation<TypeParam> run(random_clients(5, Family::diagonal), phase,
                                  prior > 0 ? with_prior(0.5, prior) : ServerSettings{});
        run.play(100);
        expect_near(run.global(), run.posterior(), 1e-5);
        EXPECT_EQ(run.sites().visited(), 0u);  // nothing is remembered
      }
    }
  }
}

TYPED_TEST_P(RoundLaws, APriorMakesTheGlobalProperBeforeAnyoneReported) {
  for (Phase phase : {ep_phase(4), sep_phase(4, ShareRule::equal)}) {
    phase.guard.mode = GuardMode::skip;  // would leave out whoever has an improper cavity
    Federation<TypeParam> run(whole_clients(), phase, with_prior(0.5, 4), V{9, 9, 9});
    EXPECT_EQ(point_estimate(run.state()), V(3, 0.5f));
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.answered, 4u);
    EXPECT_EQ(numbers.guarded(), 0u);
    EXPECT_EQ(run.state().prior, Message(V(3, 2), V(3, 4)));  // and nobody updates it
  }
}

TYPED_TEST_P(RoundLaws, FedAvgAveragesByExamplesOverThoseThatAnswered) {
  const Phase phase{.algorithm = &find_algorithm("fed_avg"),
                    .rounds = 10,
                    .weight = WeightRule::examples,
                    .damping = {.rule = DampingRule::none},
                    .clients_per_round = 4};
  for (const std::set<std::size_t>& lost : {std::set<std::size_t>{}, {1}, {0, 2}}) {
    Federation<TypeParam> run(whole_clients(), phase);
    run.executor.lost = lost;
    run.play();
    double weight = 0;
    std::vector<double> expected(3, 0);
    for (std::size_t k = 0; k < 4; ++k) {
      if (lost.contains(k)) continue;
      weight += double(run.population[k].examples);
      const V theta = mean(run.likelihood(k));
      for (std::size_t i = 0; i < 3; ++i) {
        expected[i] += double(run.population[k].examples) * theta[i];
      }
    }
    const Message q = run.global();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(q.eta()[i], expected[i] / weight, 1e-6);
    EXPECT_EQ(q.lambda_scalar(), 1);
  }
}

TYPED_TEST_P(RoundLaws, TheOrderOfClientsDoesNotMatter) {
  for (const bool stateful : {true, false}) {
    Phase phase = stateful ? ep_phase(6) : sep_phase(6, ShareRule::examples);
    phase.server_optimizer = phase.factor_optimizer = {.name = "adam", .lr = 0.1};
    Federation<TypeParam> forwards(random_clients(9, Family::diagonal), phase, with_prior(0, 1));
    Federation<TypeParam> backwards(random_clients(9, Family::diagonal), phase, with_prior(0, 1));
    backwards.executor.backwards = true;
    for (int round = 0; round < 10; ++round) {
      const RoundNumbers a = forwards.play(), b = backwards.play();
      EXPECT_EQ(a.loss_sum, b.loss_sum);
      EXPECT_EQ(forwards.state(), backwards.state());
    }
  }
}

TYPED_TEST_P(RoundLaws, WhatTravelsIsCounted) {
  for (const int bits : {64, 32}) {
    for (const Family family : {Family::diagonal, Family::isotropic}) {
      Phase phase = ep_phase(4, family);
      phase.grid_bits = bits;
      phase.clip = 1e-3;
      Federation<TypeParam> run(random_clients(4, family), phase, with_prior(0, 1));
      run.executor.lost = {0};
      const RoundNumbers numbers = run.play();
      const std::uint64_t elements = family == Family::diagonal ? 6 : 4;
      EXPECT_EQ(numbers.bytes_up, 3 * elements * std::uint64_t(bits / 8));
      EXPECT_EQ(numbers.bytes_down, 4 * elements * 4);
      EXPECT_EQ(numbers.clipped, 3u);
      EXPECT_EQ(numbers.steps, 3u);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    RoundLaws, EpReachesTheExactPosterior, EpReachesItOnA32BitGridToItsResolution,
    PriorTimesFactorsIsTheGlobal, PriorTimesFactorsIsTheGlobalInEveryBitWhereNumbersAreExact,
    PriorTimesFactorsIsTheGlobalAlsoWhereDeltasAreClipped,
    WeightsByExamplesMoveFactorsAndServerAlikeWhoeverIsMissing,
    UndampedEpFindsExactFactorsInOneVisitAndStaysThere,
    TheExactPosteriorIsAFixedPointOfEveryOptimizerHoweverFewAreAsked,
    LinearOptimizersKeepTheProductWhereAllAreAsked, ACooldownLeavesAPartOfTheStep,
    ACooldownKeepsPriorTimesFactorsEqualToTheGlobal, SepReachesTheExactPosteriorWhenAllAreAsked,
    APriorMakesTheGlobalProperBeforeAnyoneReported, FedAvgAveragesByExamplesOverThoseThatAnswered,
    TheOrderOfClientsDoesNotMatter, WhatTravelsIsCounted);

}  // namespace fedep
