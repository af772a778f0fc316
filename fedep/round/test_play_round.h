// A server and its clients in one phase, for tests that play rounds and look at what comes of them.
//
//   Federation run(whole_clients(), ep_phase(4), with_prior(0, 1));
//   run.executor.lost = {1};
//   run.play(3);
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/play_round.h"
#include "fedep/round/test_gaussian_clients.h"

namespace fedep {

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
