// A server and its clients in one phase, for tests that play rounds and look at what comes of them.
// A test's body is written once and runs wherever messages can live: `Where` is OnHost, or OnGpu of
// sim/gpu/cuda_round_laws_test.cpp.
//
//   Federation<Where> run(whole_clients(), ep_phase(4), with_prior(0, 1));
//   run.executor.lost = {1};
//   run.play(3);
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/collector.h"
#include "fedep/round/factor_clock.h"
#include "fedep/round/play_round.h"
#include "fedep/round/test_gaussian_clients.h"

namespace fedep {

using V = HostVector<float>;

// Plays visits in place, except for clients that lie.
class InPlace final : public Executor {
 public:
  InPlace(const Population& population, LocalInference& inference, SiteStore& sites)
      : population_(population), inference_(inference), sites_(sites) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    Collector answers(round);
    for (const ClientTask& task : clients) {
      Report report = play_visit(round, task, population_[task.client], &sites_, inference_);
      if (liars.contains(task.client)) report.delta.eta[0] = round.grid.limit + 1;
      try {
        answers.add(std::move(report));
      } catch (const InputError&) {
        if (!liars.contains(task.client)) throw;
      }
    }
    return std::move(answers).all();
  }
  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (round.phase.stateful()) settle_visits(round, population_, taken, part, sites_);
  }

  std::set<std::size_t> liars;

 private:
  const Population& population_;
  LocalInference& inference_;
  SiteStore& sites_;
};

// Messages in main memory: what a federation is made of there.
struct OnHost {
  using Vector = V;

  static std::string problem() { return ""; }
  static ServerState there(const ServerState& state) { return state; }
  static ServerState home(const ServerState& state) { return state; }

  struct Parts {
    Parts(const Population& population, GaussianClients& clients)
        : executor(population, clients, *store) {}
    SiteStore& sites() { return *store; }

    std::unique_ptr<SiteStore> store = make_memory_store();
    InPlace executor;
  };
};

// Hands a round on, except for what a test wants to go wrong.
template <Storage Vector>
class WithFaults final : public ExecutorOf<Vector> {
 public:
  explicit WithFaults(ExecutorOf<Vector>& inner) : inner_(inner) {}

  AnswersOf<Vector> play(const RoundTaskOf<Vector>& round,
                         std::span<const ClientTask> clients) override {
    damping = round.damping;
    grid = round.grid;
    std::vector<ClientTask> tasks;
    for (const ClientTask& task : clients) {
      if (!lost.contains(task.client)) tasks.push_back(task);
    }
    if (backwards) std::reverse(tasks.begin(), tasks.end());
    return inner_.play(round, tasks);
  }
  void settle(const RoundTaskOf<Vector>& round, std::span<const std::size_t> which,
              const StepPart& part) override {
    taken = {which.begin(), which.end()};
    inner_.settle(round, which, part);
  }

  std::set<std::size_t> lost;
  bool backwards = false;
  double damping = 0;
  Grid grid;
  std::vector<std::size_t> taken;

 private:
  ExecutorOf<Vector>& inner_;
};

template <class Where>
class Federation {
 public:
  Federation(GaussianClients given, Phase chosen, const ServerSettings& settings = {},
             const V& start = V(3))
      : clients(std::move(given)),
        population(clients.population()),
        phase(std::move(chosen)),
        there_(Where::there(
            begin_phase(initial_server_state(settings, start), phase, 0, population))) {}

  RoundNumbers play() { return play_round(there_, phase, 1, population, executor); }
  void play(int rounds) {
    for (int i = 0; i < rounds; ++i) play();
  }

  ServerState state() const { return Where::home(there_); }
  Message global() const { return state().global; }
  SiteStore& sites() { return parts_.sites(); }
  typename Where::Parts& parts() { return parts_; }

  // A client with this factor, as if it had been there before.
  void give(std::size_t client, const Message& factor) {
    const std::uint64_t key = population[client].key;
    sites().propose(key, 0,
                    {.factor = factor, .optimizer = initial_state(phase.factor_optimizer, factor)});
    sites().settle(0, std::vector{key});
  }
  Message factor(std::size_t client) {
    const ClientInfo& info = population[client];
    const ServerState now = state();
    if (auto site = sites().get(info.key)) {
      if (phase.follows_rounds()) catch_up(phase.factor_optimizer, now.step_scales, *site);
      return site->factor;
    }
    if (now.unvisited.per_example.size() == 0) return flat_like(now.global.eta(), phase.family);
    return power(now.unvisited.per_example, float(info.examples));
  }
  Message prior_times_factors() {
    Message q = state().prior;
    for (std::size_t client = 0; client < population.size(); ++client) {
      q = product(q, factor(client));
    }
    return q;
  }
  Message posterior() const { return clients.posterior(state().prior); }
  const Message& likelihood(std::size_t client) const {
    return clients.likelihood(population[client].key);
  }

  GaussianClients clients;
  Population population;
  Phase phase;

 private:
  typename Where::Parts parts_{population, clients};
  ServerStateOf<typename Where::Vector> there_;

 public:
  WithFaults<typename Where::Vector> executor{parts_.executor};
};

inline GaussianClients random_clients(std::size_t count, Family family, float spread = 1) {
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
inline GaussianClients whole_clients() {
  GaussianClients clients;
  clients.add("a", 10, Message(V{16, -32, 48}, V{64, 16, 32}));
  clients.add("b", 20, Message(V{-8, 4, 0}, V{16, 16, 48}));
  clients.add("c", 30, Message(V{80, 2, 6}, V{32, 128, 16}));
  clients.add("d", 40, Message(V{1, 7, -13}, V{8, 24, 40}));
  return clients;
}

inline Phase ep_phase(std::size_t asked, Family family = Family::diagonal) {
  return {.algorithm = &find_algorithm("fed_ep"),
          .rounds = 10000,
          .family = family,
          .cavity = CavityKind::own_factor,
          .factors = FactorStart::flat,
          .alpha = 0.01,
          .clients_per_round = asked};
}

inline Phase sep_phase(std::size_t asked, ShareRule share) {
  Phase phase = ep_phase(asked);
  phase.algorithm = &find_algorithm("fed_sep");
  phase.cavity = CavityKind::share;
  phase.share = share;
  return phase;
}

inline ServerSettings with_prior(double mean, double precision) {
  ServerSettings settings;
  settings.prior = PriorSettings{.mean = mean, .precision = precision};
  return settings;
}

inline void expect_near(const Message& a, const Message& b, double relative) {
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

}  // namespace fedep
