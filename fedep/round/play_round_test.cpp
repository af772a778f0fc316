#include "fedep/round/play_round.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/gaussian_clients.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// Plays visits in place, except for what a test wants to go wrong.
class InPlace final : public Executor {
 public:
  InPlace(const Population& population, LocalInference& inference, SiteStore& sites)
      : population_(population), inference_(inference), sites_(sites) {}

  void play(const RoundTask& round, std::span<const ClientTask> clients,
            const std::function<void(Report)>& deliver) override {
    damping = round.damping;
    grid = round.grid;
    std::vector<ClientTask> tasks(clients.begin(), clients.end());
    if (backwards) std::reverse(tasks.begin(), tasks.end());
    for (const ClientTask& task : tasks) {
      if (lost.contains(task.client)) continue;
      Report report = play_visit(round, task, population_[task.client], &sites_, inference_);
      if (liars.contains(task.client)) report.delta.eta[0] = round.grid.limit + 1;
      try {
        deliver(std::move(report));
      } catch (const InputError&) {
        if (!liars.contains(task.client)) throw;
      }
    }
  }

  void settle(const RoundTask& round, std::span<const std::size_t> which, double scale) override {
    taken = {which.begin(), which.end()};
    if (round.phase.stateful()) settle_visits(round, population_, which, scale, sites_);
  }

  std::set<std::size_t> lost, liars;
  bool backwards = false;
  double damping = 0;
  Grid grid;
  std::vector<std::size_t> taken;

 private:
  const Population& population_;
  LocalInference& inference_;
  SiteStore& sites_;
};

// A server, its clients and what they do in one phase.
struct Federation {
  Federation(GaussianClients given, Phase chosen, const ServerSettings& settings = {},
             const V& start = V(3))
      : clients(std::move(given)),
        population(clients.population()),
        phase(std::move(chosen)),
        state(begin_phase(initial_server_state(settings, start), phase, 0, population)) {}

  RoundNumbers play() { return play_round(state, phase, 1, population, executor); }
  void play(int rounds) {
    for (int i = 0; i < rounds; ++i) play();
  }

  Message factor(std::size_t client) const {
    const ClientInfo& info = population[client];
    if (const auto site = sites->get(info.key)) return site->factor;
    if (state.unvisited.per_example.size() == 0) return flat_like(state.global.eta(), phase.family);
    return power(state.unvisited.per_example, float(info.examples));
  }
  Message prior_times_factors() const {
    Message q = state.prior;
    for (std::size_t client = 0; client < population.size(); ++client)
      q = product(q, factor(client));
    return q;
  }
  Message posterior() const { return clients.posterior(state.prior); }

  GaussianClients clients;
  Population population;
  Phase phase;
  ServerState state;
  std::unique_ptr<SiteStore> sites = make_memory_store();
  InPlace executor{population, clients, *sites};
};

GaussianClients random_clients(std::size_t count, Family family, float spread = 1) {
  GaussianClients clients;
  for (std::size_t k = 0; k < count; ++k) {
    Stream stream({.seed = 21, .step = std::uint32_t(k)});
    V eta(3), lambda(3);
    const float scale = std::pow(spread, float(stream.normal()));
    for (float& x : eta.span()) x = scale * float(stream.normal());
    for (float& x : lambda.span()) x = scale * float(0.5 + stream.uniform());
    const Message likelihood =
        family == Family::diagonal ? Message(eta, lambda) : Message(eta, lambda[0]);
    clients.add("client-" + std::to_string(k), 5 + 10 * k, likelihood);
  }
  return clients;
}

// Whole numbers, so that halved a few times they are still exact.
GaussianClients whole_clients() {
  GaussianClients clients;
  clients.add("a", 10, Message(V{16, -32, 48}, V{64, 16, 32}));
  clients.add("b", 20, Message(V{-8, 4, 0}, V{16, 16, 48}));
  clients.add("c", 30, Message(V{80, 2, 6}, V{32, 128, 16}));
  clients.add("d", 40, Message(V{1, 7, -13}, V{8, 24, 40}));
  return clients;
}

Phase ep_phase(std::size_t asked, Family family = Family::diagonal) {
  return {.algorithm = &find_algorithm("fed_ep"),
          .rounds = 10000,
          .family = family,
          .cavity = CavityKind::own_factor,
          .factors = FactorStart::flat,
          .alpha = 0.01,
          .clients_per_round = asked};
}

Phase sep_phase(std::size_t asked, ShareRule share) {
  Phase phase = ep_phase(asked);
  phase.algorithm = &find_algorithm("fed_sep");
  phase.cavity = CavityKind::share;
  phase.share = share;
  return phase;
}

ServerSettings with_prior(double mean, double precision) {
  ServerSettings settings;
  settings.prior = PriorSettings{.mean = mean, .precision = precision};
  return settings;
}

void expect_near(const Message& a, const Message& b, double relative) {
  ASSERT_EQ(a.family(), b.family());
  const double eta_scale = 1 + std::sqrt(dot(b.eta(), b.eta()));
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a.eta()[i], b.eta()[i], relative * eta_scale) << i;
  for (std::size_t i = 0; i < a.lambda_span().size(); ++i) {
    EXPECT_NEAR(a.lambda_span()[i], b.lambda_span()[i],
                relative * (1 + std::fabs(double(b.lambda_span()[i]))))
        << i;
  }
}

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
  for (; run.play().outside_grid == 1; ++refusals) {
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
      for (int round = 0; round < 100; ++round) EXPECT_EQ(run.play().outside_grid, 1u);
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
