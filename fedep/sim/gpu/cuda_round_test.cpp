// Rounds on the GPU against play_round on the host, with clients whose inference is a formula that
// both evaluate in main memory. Bits must agree; where deltas are clipped, or FedPA's products are
// summed on the GPU, nearly.

#include "fedep/sim/gpu/cuda_rounds.h"

#include <cmath>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"
#include "fedep/round/play_round.h"
#include "fedep/round/test_gaussian_clients.h"
#include "fedep/sim/place/serial.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 1203;
constexpr std::size_t kClients = 9;
constexpr std::uint64_t kSeed = 5;

// What a client finds. Client 3 has no data; client 4 is far off, beyond any 32-bit grid, in rounds
// divisible by 3; client 2 is infinitely far in odd ones; the precision of client 5's likelihood is negative in places,
// and in a diagonal family so much that q and cavities become improper.
struct Formula {
  explicit Formula(Family chosen) : family(chosen) {
    for (std::uint32_t k = 0; k < kClients; ++k) {
      V eta(kSize), lambda(kSize);
      fill_normal({.seed = 41, .step = k}, eta.span());
      fill_uniform({.seed = 42, .step = k}, lambda.span());
      lambda = lambda + 0.1f;
      if (k == 5) lambda = lambda + (family == Family::diagonal ? -25.0f : -0.9f);
      if (k == 6) lambda = 25.0f * lambda;
      ids.emplace_back("client-" + std::to_string(k), k == 3 ? 0 : 5 + 10 * k);
      likelihoods.push_back(family == Family::diagonal ? Message(eta, lambda)
                                                       : Message(eta, lambda[0]));
    }
  }

  ClientRun run(std::size_t client, const Phase& phase, std::int64_t round, const Message& cavity,
                const V& start, VisitNumbers& numbers) const {
    const Message& likelihood = likelihoods[client];
    numbers.steps = 3;
    numbers.loss_sum = dot(likelihood.eta(), start);
    float far = 1.0f;
    if (far_off && client == 4 && round % 3 == 0) far = 1e25f;
    if (far_off && client == 2 && round % 2 == 1) far = INFINITY;
    ClientRun run;
    if (phase.algorithm->needs == Needs::tilted) {
      run.tilted = power(product(cavity, likelihood), far);
      return run;
    }
    run.last = far * (start + 0.25f * likelihood.eta());
    for (std::uint32_t i = 0; phase.algorithm->needs == Needs::samples && i < 4; ++i) {
      V noise(kSize);
      fill_normal({.seed = 43, .client = client, .step = i}, noise.span());
      run.samples.push_back(run.last + 0.1f * noise);
    }
    return run;
  }

  Family family;
  bool far_off = true;
  std::vector<std::pair<std::string, std::size_t>> ids;
  std::vector<Message> likelihoods;
};

class OnHost final : public LocalInference {
 public:
  OnHost(const Formula& formula, const Population& population)
      : formula_(formula), population_(population) {}
  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    std::size_t client = 0;
    while (population_[client].key != visit.client.key) ++client;
    return formula_.run(client, visit.round.phase, visit.round.round, visit.cavity,
                        visit.round.mean, numbers);
  }

 private:
  const Formula& formula_;
  const Population& population_;
};

class OnDevice final : public CudaInference {
 public:
  explicit OnDevice(const Formula& formula) : formula_(formula) {}
  std::vector<ClientRunOf<DeviceVector>> infer(std::uint64_t seed, std::int64_t round,
                                               const Phase& phase, const DeviceVector& start,
                                               std::vector<CohortVisit> visits,
                                               std::vector<VisitNumbers>& numbers) override {
    EXPECT_EQ(seed, kSeed);
    std::vector<ClientRunOf<DeviceVector>> runs;
    for (std::size_t i = 0; i < visits.size(); ++i) {
      const ClientRun here = formula_.run(visits[i].index, phase, round, to_host(visits[i].cavity),
                                          to_host(start), numbers[i]);
      ClientRunOf<DeviceVector> run;
      run.last = to_device(here.last);
      run.tilted = to_device(here.tilted);
      for (const V& sample : here.samples) run.samples.push_back(to_device(sample));
      runs.push_back(std::move(run));
    }
    return runs;
  }

 private:
  const Formula& formula_;
};

struct Case {
  std::string algorithm;
  Family family = Family::isotropic;
  GuardMode guard = GuardMode::count;
  double clip = 0;
  FactorStart start = FactorStart::carry_mean;
  bool damping_outside = false;
  std::string optimizer = "sgd";
  std::optional<CooldownSettings> cooldown = {};
  int bits = 64;
  double tolerance = 0;
  bool far_off = true;
  std::optional<WeightRule> weight = {};
  AverageSettings average = {AverageKind::exponential, 5};
  ScheduleSettings schedule = {};
  FactorClock clock = FactorClock::visit;
};

Phase phase_of(const Case& c) {
  const Algorithm& algorithm = find_algorithm(c.algorithm);
  Phase phase{.algorithm = &algorithm, .rounds = 12};
  phase.family = algorithm.point_estimate ? Family::isotropic : c.family;
  phase.cavity = algorithm.cavity;
  phase.weight = c.weight.value_or(algorithm.weight);
  phase.damping.outside = c.damping_outside;
  phase.clip = c.clip;
  phase.guard = {.mode = c.guard, .floor = 0.01};
  phase.factors = c.start;
  phase.alpha = 0.01;
  phase.server_optimizer = {.name = c.optimizer, .lr = 0.5, .momentum = 0.5};
  phase.factor_optimizer = phase.server_optimizer;
  phase.cooldown = c.cooldown;
  phase.schedule = c.schedule;
  phase.clock = c.clock;
  if (algorithm.plain_steps) {
    phase.server_optimizer = phase.factor_optimizer = {.name = "sgd", .lr = 1};
  }
  if (algorithm.step == StepRule::admm) {
    if (!algorithm.point_estimate) phase.penalty = 1.5;
    phase.damping = {.rule = DampingRule::constant, .constant = 0.5 * phase.penalty};
  }
  phase.mu = 0.1;
  phase.average = c.average;
  phase.clients_per_round = 5;
  phase.grid_bits = c.bits;
  return phase;
}

void expect_near(const Message& a, const Message& b, double tolerance) {
  if (tolerance == 0) {
    EXPECT_EQ(a, b);
    return;
  }
  ASSERT_EQ(a.family(), b.family());
  const auto distance = [](std::span<const float> x, std::span<const float> y) {
    double squares = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      squares += std::pow(double(x[i]) - double(y[i]), 2);
      all += std::pow(double(y[i]), 2);
    }
    return std::sqrt(squares) / std::max(std::sqrt(all), 1e-30);
  };
  EXPECT_LE(distance(a.eta().span(), b.eta().span()), tolerance);
  EXPECT_LE(distance(a.lambda_span(), b.lambda_span()), tolerance);
}

void expect_same(const RoundNumbers& a, const RoundNumbers& b) {
  EXPECT_EQ(a.asked, b.asked);
  EXPECT_EQ(a.answered, b.answered);
  EXPECT_EQ(a.dropped, b.dropped);
  EXPECT_EQ(a.outside_grid, b.outside_grid);
  EXPECT_EQ(a.diverged, b.diverged);
  EXPECT_EQ(a.skipped, b.skipped);
  EXPECT_EQ(a.clipped, b.clipped);
  EXPECT_EQ(a.improper_cavities, b.improper_cavities);
  EXPECT_EQ(a.improper_global, b.improper_global);
  EXPECT_EQ(a.step_scale, b.step_scale);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_NEAR(a.loss_sum, b.loss_sum, 1e-3 * (1 + std::fabs(b.loss_sum)));
  EXPECT_EQ(a.bytes_up, b.bytes_up);
  EXPECT_EQ(a.bytes_down, b.bytes_down);
}

class CudaRound : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CudaRound, IsTheHostsRound) {
  const Case& c = GetParam();
  Formula formula(c.family);
  formula.far_off = c.far_off;
  const Population population = make_population(formula.ids);
  const Phase phase = phase_of(c);
  ServerSettings server;
  server.prior = PriorSettings{.mean = 0.5, .precision = 0.25};
  const ServerState begin =
      begin_phase(initial_server_state(server, V(kSize, 0.5f)), phase, 0, population);

  OnHost on_host(formula, population);
  const auto host_sites = make_memory_store();
  const auto executor = make_serial(population, on_host, host_sites.get());
  ServerState host = begin;

  OnDevice on_device(formula);
  const auto home = make_memory_store();
  // Room for three states on the GPU, the rest comes and goes.
  DeviceSites sites(*home, 3 * SiteShape{kSize, c.family, 1}.bytes());
  CudaRounds rounds(kSeed, population, on_device, &sites);
  ServerState device = begin;

  std::size_t outside = 0, diverged = 0, guarded = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const RoundNumbers expected = play_round(host, phase, kSeed, population, *executor);
    const RoundNumbers numbers = rounds.play(device, phase);
    expect_same(numbers, expected);
    outside += numbers.outside_grid;
    diverged += numbers.diverged;
    guarded += numbers.guarded();
    EXPECT_EQ(device.round, host.round);
    EXPECT_EQ(device.grid.extra_bits, host.grid.extra_bits);
    EXPECT_NEAR(device.grid.largest_eta, host.grid.largest_eta,
                c.tolerance * host.grid.largest_eta);
    expect_near(to_host(rounds.on_gpu(device).global), host.global, c.tolerance);
    if (round % 4 == 3) {
      rounds.bring_home(device);
      expect_near(device.global, host.global, c.tolerance);
      ASSERT_EQ(device.optimizer.slots.size(), host.optimizer.slots.size());
      EXPECT_EQ(device.optimizer.steps, host.optimizer.steps);
      if (c.tolerance == 0) {
        EXPECT_EQ(device, host);
        EXPECT_EQ(device.average.rounds > 0, host.average.rounds > 0);
        EXPECT_EQ(to_host(point_estimate(rounds.on_gpu(device))), point_estimate(host));
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(outside > 0, c.far_off);
  EXPECT_EQ(diverged > 0, c.far_off);
  if (c.family == Family::diagonal) {
    EXPECT_GT(guarded, 0u);
  }
  for (std::size_t k = 0; phase.stateful() && k < kClients; ++k) {
    const auto here = host_sites->get(population[k].key);
    const auto there = sites.get(population[k].key);
    ASSERT_EQ(there.has_value(), here.has_value()) << k;
    if (!here) continue;
    expect_near(there->factor, here->factor, c.tolerance);
    EXPECT_EQ(there->optimizer.steps, here->optimizer.steps);
    if (c.tolerance == 0) {
      EXPECT_EQ(there, here) << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, CudaRound,
    testing::Values(
        Case{.algorithm = "fed_avg"}, Case{.algorithm = "fed_avg", .optimizer = "adam"},
        Case{.algorithm = "fed_avg", .clip = 3, .tolerance = 1e-6, .far_off = false},
        Case{.algorithm = "fed_pa", .tolerance = 1e-5}, Case{.algorithm = "fed_prox"},
        Case{.algorithm = "fed_dyn"},
        Case{.algorithm = "fed_dyn",
             .schedule = {.server_rate = RoundSchedule{.kind = ScheduleKind::cosine}}},
        Case{.algorithm = "bayes_admm"},
        Case{.algorithm = "bayes_admm", .family = Family::diagonal, .guard = GuardMode::back_off},
        Case{.algorithm = "fed_sep"}, Case{.algorithm = "fed_sep", .family = Family::diagonal},
        Case{.algorithm = "fed_sep", .family = Family::diagonal, .guard = GuardMode::back_off},
        Case{.algorithm = "fed_sep", .family = Family::diagonal, .guard = GuardMode::floor},
        Case{.algorithm = "fed_sep", .family = Family::diagonal, .guard = GuardMode::skip},
        Case{.algorithm = "fed_sep", .damping_outside = true, .optimizer = "yogi"},
        Case{.algorithm = "fed_ep"},
        Case{.algorithm = "fed_ep", .cooldown = CooldownSettings{.after = 3, .rounds = 6}},
        Case{.algorithm = "fed_ep", .optimizer = "adagrad", .bits = 32},
        Case{.algorithm = "fed_avg", .average = {AverageKind::tail, 7}},
        Case{.algorithm = "fed_ep",
             .family = Family::diagonal,
             .average = {AverageKind::tail, 7},
             .schedule = {.server_rate = RoundSchedule{.kind = ScheduleKind::cosine},
                          .alpha = RoundSchedule{.to = 3}}},
        Case{.algorithm = "fed_ep", .family = Family::diagonal},
        Case{.algorithm = "fed_ep", .family = Family::diagonal, .start = FactorStart::flat},
        Case{.algorithm = "fed_ep", .family = Family::diagonal, .guard = GuardMode::back_off},
        Case{.algorithm = "fed_ep", .family = Family::diagonal, .guard = GuardMode::floor},
        Case{.algorithm = "fed_ep",
             .family = Family::diagonal,
             .guard = GuardMode::skip,
             .far_off = false},
        Case{.algorithm = "fed_ep", .damping_outside = true, .optimizer = "adam"},
        Case{.algorithm = "fed_ep", .optimizer = "yogi"},
        Case{.algorithm = "fed_ep", .weight = WeightRule::examples},
        Case{.algorithm = "fed_ep", .family = Family::diagonal, .weight = WeightRule::examples},
        Case{.algorithm = "fed_ep", .clip = 3, .tolerance = 1e-6, .far_off = false},
        Case{.algorithm = "fed_ep",
             .cooldown = CooldownSettings{.after = 3, .rounds = 6},
             .clock = FactorClock::round},
        Case{.algorithm = "fed_ep",
             .family = Family::diagonal,
             .guard = GuardMode::back_off,
             .clock = FactorClock::round},
        Case{.algorithm = "fed_ep",
             .family = Family::diagonal,
             .weight = WeightRule::examples,
             .clock = FactorClock::round}));

TEST(CudaRoundsOfARun, GoOnFromWhatTheHostSays) {
  if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  const Formula formula(Family::isotropic);
  const Population population = make_population(formula.ids);
  const Phase first = phase_of({.algorithm = "fed_avg"});
  Phase second = phase_of({.algorithm = "fed_ep"});
  second.first_round = 3;
  const auto home = make_memory_store();
  OnDevice inference(formula);
  const auto play = [&](bool restart) {
    home->clear();
    auto sites = std::make_unique<DeviceSites>(*home);
    auto rounds = std::make_unique<CudaRounds>(kSeed, population, inference, sites.get());
    ServerState state = begin_phase(initial_server_state({}, V(kSize, 0.5f)), first, 0, population);
    for (int i = 0; i < 3; ++i) rounds->play(state, first);
    rounds->bring_home(state);
    state = begin_phase(std::move(state), second, 1, population);
    sites->clear();
    for (int i = 0; i < 6; ++i) {
      rounds->play(state, second);
      if (!restart || i != 2) continue;
      // As if the process had died after a checkpoint.
      rounds->bring_home(state);
      for (std::size_t k = 0; k < kClients; ++k) {
        if (auto site = sites->get(population[k].key)) {
          const std::vector<std::uint64_t> key{population[k].key};
          sites->propose(key[0], i, std::move(*site));
          sites->settle(i, key);
        }
      }
      rounds.reset();
      sites = std::make_unique<DeviceSites>(*home);
      rounds = std::make_unique<CudaRounds>(kSeed, population, inference, sites.get());
    }
    rounds->bring_home(state);
    return state;
  };
  const ServerState whole = play(false);
  EXPECT_EQ(whole.round, 9);
  EXPECT_EQ(play(true), whole);
}

}  // namespace
}  // namespace fedep
