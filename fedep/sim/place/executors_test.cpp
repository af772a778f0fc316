// Every executor against serial, which is the specification.

#include <atomic>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/inference/exact.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/play_round.h"
#include "fedep/round/test_gaussian_clients.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kClients = 11;
constexpr std::size_t kSize = 7;

GaussianClients random_clients(Family family) {
  GaussianClients clients;
  for (std::uint32_t k = 0; k < kClients; ++k) {
    V eta(kSize), lambda(kSize);
    fill_normal({.seed = 1, .step = k}, eta.span());
    fill_uniform({.seed = 2, .step = k}, lambda.span());
    clients.add("client-" + std::to_string(k), 3 + k,
                family == Family::diagonal ? Message(eta, lambda) : Message(eta, lambda[0]));
  }
  return clients;
}

Phase phase_of(const std::string& algorithm, Family family) {
  const Algorithm& chosen = find_algorithm(algorithm);
  return {.algorithm = &chosen,
          .rounds = 100,
          .family = family,
          .cavity = chosen.cavity,
          .weight = chosen.weight,
          .clip = 2,
          .alpha = 0.1,
          .server_optimizer = {.lr = 0.5, .momentum = 0.9},
          .factor_optimizer = {.lr = 0.5, .momentum = 0.9},
          .clients_per_round = 6};
}

struct Played {
  ServerState state;
  std::vector<double> losses;
  std::vector<std::optional<SiteState>> sites;

  bool operator==(const Played&) const = default;
};

// Ten rounds with `workers` threads, or serially with none.
Played play(const Phase& phase, GaussianClients clients, std::size_t workers) {
  const Population population = clients.population();
  const auto sites = make_memory_store();
  const auto executor =
      workers == 0 ? make_serial(population, clients, sites.get())
                   : make_threads(
                         population, [&] { return std::make_unique<GaussianClients>(clients); },
                         sites.get(), workers);
  Played played;
  played.state = begin_phase(initial_server_state({}, V(kSize, 0.5f)), phase, 0, population);
  for (int round = 0; round < 10; ++round) {
    const RoundNumbers numbers = play_round(played.state, phase, 5, population, *executor);
    EXPECT_EQ(numbers.answered, phase.clients_per_round);
    played.losses.push_back(numbers.loss_sum);
  }
  for (std::size_t k = 0; k < population.size(); ++k)
    played.sites.push_back(sites->get(population[k].key));
  return played;
}

class Executors : public testing::TestWithParam<std::tuple<std::string, Family, int>> {};

TEST_P(Executors, AgreeInEveryBitWhateverTheNumberOfWorkers) {
  const auto [algorithm, family, bits] = GetParam();
  Phase phase = phase_of(algorithm, family);
  phase.grid_bits = bits;
  const GaussianClients clients = random_clients(family);
  const Played serial = play(phase, clients, 0);
  EXPECT_EQ(
      serial.sites[0].has_value() || serial.sites[1].has_value() || serial.sites[2].has_value(),
      phase.stateful());
  for (std::size_t workers = 1; workers <= 4; ++workers)
    EXPECT_EQ(play(phase, clients, workers), serial) << workers;
  EXPECT_EQ(play(phase, clients, 20), serial);  // more than there are clients to ask
}

INSTANTIATE_TEST_SUITE_P(Threads, Executors,
                         testing::Values(std::tuple{"fed_ep", Family::diagonal, 64},
                                         std::tuple{"fed_ep", Family::isotropic, 32},
                                         std::tuple{"fed_sep", Family::diagonal, 64},
                                         std::tuple{"fed_sep", Family::isotropic, 64},
                                         std::tuple{"fed_avg", Family::isotropic, 64}));

// Fails for clients 4 and 9. Where clients run at the same time, 4 waits for 9 to have failed.
class Failing final : public LocalInference {
 public:
  Failing(GaussianClients& clients, std::atomic<bool>* later_failed)
      : clients_(clients), later_failed_(later_failed) {}

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    if (visit.client.id == "client-4") {
      if (later_failed_ != nullptr) later_failed_->wait(false);
      throw RunError("out of memory");
    }
    if (visit.client.id == "client-9") {
      if (later_failed_ != nullptr) {
        *later_failed_ = true;
        later_failed_->notify_all();
      }
      throw RunError("out of disk");
    }
    return clients_.infer(visit, numbers);
  }

 private:
  GaussianClients& clients_;
  std::atomic<bool>* later_failed_;
};

TEST(ExecutorErrors, NameRoundClientAndStageAndAreTheSameEverywhere) {
  GaussianClients clients = random_clients(Family::diagonal);
  const Population population = clients.population();
  Phase phase = phase_of("fed_ep", Family::diagonal);
  phase.clients_per_round = kClients;
  for (std::size_t workers = 0; workers <= 4; ++workers) {
    const auto sites = make_memory_store();
    std::atomic<bool> later_failed = false;
    const auto make = [&] {
      return std::make_unique<Failing>(clients, workers > 1 ? &later_failed : nullptr);
    };
    const auto failing = make();
    const auto executor = workers == 0 ? make_serial(population, *failing, sites.get())
                                       : make_threads(population, make, sites.get(), workers);
    ServerState state = begin_phase(initial_server_state({}, V(kSize, 0.5f)), phase, 0, population);
    const ServerState before = state;
    try {
      play_round(state, phase, 5, population, *executor);
      FAIL();
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "round 1, client client-4, local inference: out of memory");
    }
    EXPECT_EQ(state, before);
    EXPECT_EQ(sites->visited(), 0u);
    // The executor is as good as new: what was proposed in vain is gone after the next round.
    const auto sound = make_threads(
        population, [&] { return std::make_unique<GaussianClients>(clients); }, sites.get(), 2);
    play_round(state, phase, 5, population, *sound);
    EXPECT_EQ(sites->visited(), kClients);
  }
}

TEST(ExecutorErrors, NoWorkersAreRefused) {
  GaussianClients clients = random_clients(Family::diagonal);
  const Population population = clients.population();
  EXPECT_THROW(
      make_threads(
          population, [&] { return std::make_unique<GaussianClients>(clients); }, nullptr, 0),
      InputError);
}

// Full-covariance likelihoods, outside the family: the fixed point keeps the exact mean (Guo+23
// Sec. 3.1).
class DenseClients final : public LocalInference {
 public:
  DenseClients() {
    for (std::uint32_t k = 0; k < kClients; ++k) {
      Stream stream({.seed = 31, .step = k});
      const Eigen::MatrixXf root =
          Eigen::MatrixXf::NullaryExpr(4, 4, [&] { return float(stream.normal()); });
      const Eigen::VectorXf eta =
          Eigen::VectorXf::NullaryExpr(4, [&] { return float(stream.normal()); });
      likelihoods_.push_back({eta, root * root.transpose() + Eigen::MatrixXf::Identity(4, 4)});
      ids_.emplace_back("client-" + std::to_string(k), 1);
    }
  }

  Population population() const { return make_population(ids_); }
  Eigen::VectorXf exact_mean() const {
    DenseGaussian<float> posterior = likelihoods_[0];
    for (std::size_t k = 1; k < kClients; ++k) posterior = product(posterior, likelihoods_[k]);
    return mean(posterior);
  }

  ClientRun infer(const Visit& visit, VisitNumbers&) override {
    const std::size_t k = std::stoul(visit.client.id.substr(7));
    ClientRun run;
    run.tilted = project_diagonal(exact_tilted(visit.cavity, likelihoods_[k]));
    return run;
  }

 private:
  std::vector<DenseGaussian<float>> likelihoods_;
  std::vector<std::pair<std::string, std::size_t>> ids_;
};

TEST(DenseClients, AreBroughtToTheirExactMeanByRoundsOfSomeOfThem) {
  DenseClients clients;
  const Population population = clients.population();
  const auto sites = make_memory_store();
  const auto executor = make_serial(population, clients, sites.get());
  const Phase phase{.algorithm = &find_algorithm("fed_ep"),
                    .rounds = 1000,
                    .family = Family::diagonal,
                    .cavity = CavityKind::own_factor,
                    .factors = FactorStart::flat,
                    .clients_per_round = 4};
  ServerState state = begin_phase(initial_server_state({}, V(4)), phase, 0, population);
  for (int round = 0; round < 400; ++round) play_round(state, phase, 5, population, *executor);
  const Eigen::VectorXf expected = clients.exact_mean();
  const V found = mean(state.global);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[Eigen::Index(i)], 2e-6);
}

}  // namespace
}  // namespace fedep
