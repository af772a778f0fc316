// Rounds as they should go: who is asked, where they end, and what they count.

#include "fedep/round/play_round.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/round/test_play_round.h"

namespace fedep {
namespace {

TEST(SampleClients, DrawsDistinctClientsThatRepeatWithTheSeed) {
  std::vector<int> asked_of(50, 0);
  for (std::int64_t round = 0; round < 2000; ++round) {
    const std::vector<std::size_t> clients = sample_clients(5, round, 50, 10);
    EXPECT_EQ(clients, sample_clients(5, round, 50, 10));
    EXPECT_EQ(std::set(clients.begin(), clients.end()).size(), 10u);
    EXPECT_TRUE(std::is_sorted(clients.begin(), clients.end()));
    EXPECT_LT(clients.back(), 50u);
    for (const std::size_t client : clients) ++asked_of[client];
  }
  // 400 each expected, binomial deviation 18.
  for (const int times : asked_of) EXPECT_NEAR(times, 400, 5 * 18);
  EXPECT_NE(sample_clients(5, 0, 50, 10), sample_clients(6, 0, 50, 10));
  EXPECT_NE(sample_clients(5, 0, 50, 10), sample_clients(5, 1, 50, 10));
}

TEST(SampleClients, AsksEveryoneOrRefusesToAskMore) {
  EXPECT_EQ(sample_clients(1, 0, 3, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_THROW(sample_clients(1, 0, 3, 4), InputError);
}

struct EpCase {
  DampingSettings damping;
  std::size_t clients;
  std::size_t asked;
  FactorStart start = FactorStart::flat;
  double lr = 1;
  double prior = 0;
};

class FedEpRounds : public testing::TestWithParam<EpCase> {
 protected:
  Federation run(Family family, int bits = 64) const {
    const EpCase& c = GetParam();
    Phase phase = ep_phase(c.asked, family);
    phase.damping = c.damping;
    phase.factors = c.start;
    phase.grid_bits = bits;
    phase.server_optimizer.lr = phase.factor_optimizer.lr = c.lr;
    return Federation(random_clients(c.clients, family), phase,
                      c.prior > 0 ? with_prior(0.5, c.prior) : ServerSettings{}, V{0.5f, -1, 2});
  }
};

TEST_P(FedEpRounds, ReachTheExactPosterior) {
  for (const Family family : {Family::diagonal, Family::isotropic}) {
    Federation run = this->run(family);
    run.play(300);
    expect_near(run.state.global, run.posterior(), 1e-5);
    for (std::size_t k = 0; k < run.population.size(); ++k) {
      expect_near(run.factor(k), run.clients.likelihood(run.population[k].key), 1e-5);
    }
  }
}

TEST_P(FedEpRounds, ReachItOnA32BitGridToItsResolution) {
  Federation run = this->run(Family::diagonal, 32);
  run.play(300);
  EXPECT_EQ(run.executor.grid.bits, 32);
  expect_near(run.state.global, run.posterior(), 1e-4);
}

TEST_P(FedEpRounds, KeepPriorTimesFactorsEqualToTheGlobal) {
  for (const Family family : {Family::diagonal, Family::isotropic}) {
    Federation run = this->run(family);
    for (int round = 0; round < 40; ++round) {
      run.play();
      expect_near(run.prior_times_factors(), run.state.global, 2e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Damping, FedEpRounds,
    testing::Values(
        EpCase{{.rule = DampingRule::one_over_k}, 5, 5},
        EpCase{{.rule = DampingRule::one_over_k}, 6, 2},
        EpCase{{.rule = DampingRule::one_over_k, .outside = true}, 5, 5},
        EpCase{{.rule = DampingRule::constant, .constant = 0.5}, 7, 3},
        EpCase{{.rule = DampingRule::constant, .constant = 0.5, .outside = true}, 7, 3},
        EpCase{{.rule = DampingRule::none}, 3, 2}, EpCase{{.rule = DampingRule::none}, 3, 3},
        EpCase{{.rule = DampingRule::decaying}, 5, 5},
        EpCase{{.rule = DampingRule::decaying, .outside = true}, 6, 4},
        EpCase{{.rule = DampingRule::one_over_k}, 5, 5, FactorStart::carry_mean, 0.5},
        EpCase{
            {.rule = DampingRule::constant, .constant = 0.5}, 5, 2, FactorStart::carry_mean, 1, 2},
        EpCase{{.rule = DampingRule::one_over_k}, 4, 1, FactorStart::flat, 1, 2}));

TEST(FedEp, KeepsPriorTimesFactorsEqualToTheGlobalInEveryBitWhereNumbersAreExact) {
  for (const bool outside : {false, true}) {
    Phase phase = ep_phase(3);
    phase.damping = {.rule = DampingRule::constant, .constant = 0.5, .outside = outside};
    Federation run(whole_clients(), phase, with_prior(0.5, 4));
    for (int round = 0; round < 6; ++round) {
      run.play();
      EXPECT_EQ(run.prior_times_factors(), run.state.global);
    }
  }
}

TEST(FedEp, UndampedFindsExactFactorsInOneVisitAndStaysThere) {
  Phase phase = ep_phase(4);
  phase.damping.rule = DampingRule::none;
  Federation run(whole_clients(), phase);
  run.play();
  EXPECT_EQ(run.state.global, run.posterior());
  const Message found = run.state.global;
  run.play(3);
  EXPECT_EQ(run.state.global, found);
}

TEST(Cooldown, LeavesAPartOfTheStep) {
  for (const double part : {0.0, 0.25, 1.0}) {
    Phase phase = ep_phase(4);
    const Federation before(whole_clients(), phase, with_prior(0, 4));
    Federation whole(whole_clients(), phase, with_prior(0, 4));
    phase.cooldown = CooldownSettings{.to = part};
    Federation cooled(whole_clients(), phase, with_prior(0, 4));
    whole.play();
    cooled.play();
    expect_near(quotient(cooled.state.global, before.state.global),
                power(quotient(whole.state.global, before.state.global), float(part)), 1e-6);
  }
}

TEST(Cooldown, KeepsPriorTimesFactorsEqualToTheGlobal) {
  Phase phase = ep_phase(2);
  phase.cooldown = CooldownSettings{.after = 5, .rounds = 10};
  Federation run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
  for (int round = 0; round < 20; ++round) {
    run.play();
    expect_near(run.prior_times_factors(), run.state.global, 2e-6);
  }
}

// Stochastic EP follows whom it asked last.
TEST(Cooldown, AveragesOverWhoWasAsked) {
  const auto distance = [](std::optional<CooldownSettings> cooldown) {
    Phase phase = sep_phase(2, ShareRule::equal);
    phase.cooldown = cooldown;
    Federation run(random_clients(6, Family::diagonal), phase);
    run.play(2000);
    const V off = run.state.global.eta() - run.posterior().eta();
    return std::sqrt(dot(off, off));
  };
  EXPECT_LT(distance(CooldownSettings{.after = 200, .rounds = 1800}), 0.3 * distance({}));
}

TEST(FedSep, ReachesTheExactPosteriorWhenAllAreAsked) {
  for (const ShareRule share : {ShareRule::examples, ShareRule::equal}) {
    for (const double prior : {0.0, 3.0}) {
      for (const FactorStart start : {FactorStart::flat, FactorStart::carry_mean}) {
        Phase phase = sep_phase(5, share);
        phase.factors = start;
        Federation run(random_clients(5, Family::diagonal), phase,
                       prior > 0 ? with_prior(0.5, prior) : ServerSettings{});
        run.play(100);
        expect_near(run.state.global, run.posterior(), 1e-5);
        EXPECT_EQ(run.sites->visited(), 0u);  // nothing is remembered
      }
    }
  }
}

TEST(Prior, MakesTheGlobalProperBeforeAnyoneReported) {
  for (Phase phase : {ep_phase(4), sep_phase(4, ShareRule::equal)}) {
    phase.guard.mode = GuardMode::skip;  // would leave out whoever has an improper cavity
    Federation run(whole_clients(), phase, with_prior(0.5, 4), V{9, 9, 9});
    EXPECT_EQ(point_estimate(run.state), V(3, 0.5f));
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.answered, 4u);
    EXPECT_EQ(numbers.guarded(), 0u);
    EXPECT_EQ(run.state.prior, Message(V(3, 2), V(3, 4)));  // and nobody updates it
  }
}

TEST(FedAvg, AveragesByExamplesOverThoseThatAnswered) {
  const Phase phase{.algorithm = &find_algorithm("fed_avg"),
                    .rounds = 10,
                    .weight = WeightRule::examples,
                    .damping = {.rule = DampingRule::none},
                    .clients_per_round = 4};
  for (const std::set<std::size_t>& lost : {std::set<std::size_t>{}, {1}, {0, 2}}) {
    Federation run(whole_clients(), phase);
    run.executor.lost = lost;
    run.play();
    double weight = 0;
    std::vector<double> expected(3, 0);
    for (std::size_t k = 0; k < 4; ++k) {
      if (lost.contains(k)) continue;
      weight += double(run.population[k].examples);
      const V theta = mean(run.clients.likelihood(run.population[k].key));
      for (std::size_t i = 0; i < 3; ++i)
        expected[i] += double(run.population[k].examples) * theta[i];
    }
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(run.state.global.eta()[i], expected[i] / weight, 1e-6);
    EXPECT_EQ(run.state.global.lambda_scalar(), 1);
  }
}

TEST(WeightsByExamples, MoveFactorsAsTheyMoveTheServerAlsoWhenClientsDrop) {
  Phase phase = ep_phase(4);
  phase.weight = WeightRule::examples;
  phase.damping.rule = DampingRule::none;
  Federation run(random_clients(4, Family::diagonal), phase, with_prior(0, 1));
  for (int round = 0; round < 20; ++round) {
    run.executor.lost = {std::size_t(round) % 4};
    run.play();
    expect_near(run.prior_times_factors(), run.state.global, 2e-6);
  }
}

TEST(PlayRound, DoesNotDependOnTheOrderOfArrival) {
  for (const bool stateful : {true, false}) {
    Phase phase = stateful ? ep_phase(6) : sep_phase(6, ShareRule::examples);
    phase.server_optimizer = phase.factor_optimizer = {.name = "adam", .lr = 0.1};
    Federation forwards(random_clients(9, Family::diagonal), phase, with_prior(0, 1));
    Federation backwards(random_clients(9, Family::diagonal), phase, with_prior(0, 1));
    backwards.executor.backwards = true;
    for (int round = 0; round < 10; ++round) {
      const RoundNumbers a = forwards.play(), b = backwards.play();
      EXPECT_EQ(a.loss_sum, b.loss_sum);
      EXPECT_EQ(forwards.state, backwards.state);
    }
  }
}

TEST(PlayRound, CountsWhatTravels) {
  for (const int bits : {64, 32}) {
    for (const Family family : {Family::diagonal, Family::isotropic}) {
      Phase phase = ep_phase(4, family);
      phase.grid_bits = bits;
      phase.clip = 1e-3;
      Federation run(random_clients(4, family), phase, with_prior(0, 1));
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

}  // namespace
}  // namespace fedep
