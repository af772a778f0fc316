// How far q is from its factors' product, added up on the GPU, against the host's function on the same
// states, most of them in page-locked main memory.

#include "fedep/sim/gpu/cuda_factor_gap.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"
#include "fedep/round/diagnosis/factor_gap.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 70001;
constexpr std::size_t kClients = 9;
constexpr std::size_t kVisited = 6;
constexpr std::uint32_t kServerSteps = 5;

struct Case {
  std::string algorithm = "fed_ep";
  Family family = Family::isotropic;
  FactorClock clock = FactorClock::visit;
  bool flat = false;  // factors of those never visited
  std::size_t room = 2;
};

Message drawn(Family family, std::uint32_t step) {
  V eta(kSize), lambda(kSize);
  fill_normal({.seed = 7, .step = step}, eta.span());
  fill_uniform({.seed = 8, .step = step}, lambda.span());
  lambda = lambda + 0.1f;
  return family == Family::diagonal ? Message(eta, lambda) : Message(eta, lambda[0]);
}

Population some_clients() {
  std::vector<std::pair<std::string, std::size_t>> ids;
  for (std::size_t k = 0; k < kClients; ++k) ids.emplace_back("client-" + std::to_string(k), 3 + k);
  return make_population(ids);
}

Phase phase_of(const Case& c) {
  const Algorithm& algorithm = find_algorithm(c.algorithm);
  Phase phase{.algorithm = &algorithm, .rounds = 12};
  phase.family = c.family;
  phase.cavity = algorithm.cavity;
  phase.clock = c.clock;
  phase.server_optimizer = phase.factor_optimizer = {.name = "sgd", .lr = 0.5, .momentum = 0.5};
  return phase;
}

class CudaFactorGap : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    const Case& c = GetParam();
    phase = phase_of(c);
    state.prior = drawn(c.family, 1);
    state.global = drawn(c.family, 2);
    if (phase.algorithm->step == StepRule::admm) state.factors = drawn(c.family, 3);
    if (!c.flat) state.unvisited.per_example = power(drawn(c.family, 4), 0.1f);
    state.step_scales.assign(kServerSteps, 0.75);
    shape = {.size = kSize, .family = c.family, .slots = 1};
    home = make_memory_store();
    sites = std::make_unique<DeviceSites>(*home, c.room * shape.bytes());
  }

  void write(DeviceSite& site, std::size_t which, const Message& message) {
    const auto upload = [](float* to, std::span<const float> from) {
      copy_to_device(to, from.data(), from.size_bytes());
    };
    upload(site.eta(shape, which), message.eta().span());
    if (shape.family == Family::diagonal) {
      upload(site.lambda(shape, which), message.lambda_span());
    } else {
      site.numbers[which] = message.lambda_scalar();
    }
  }

  // Rounds of two clients each; the last one fetches ahead the factors of two that it did not ask.
  void visit(const Message* first_factor = nullptr) {
    for (std::size_t round = 0; round < kVisited / 2; ++round) {
      sites->begin(shape, std::int64_t(round));
      std::vector<std::uint64_t> keys;
      for (const std::size_t k : {2 * round, 2 * round + 1}) {
        keys.push_back(population[k].key);
        DeviceSite& site = sites->add(keys.back());
        const bool first = k == 0 && first_factor != nullptr;
        write(site, 0, first ? *first_factor : drawn(shape.family, std::uint32_t(10 + k)));
        write(site, 1, drawn(shape.family, std::uint32_t(30 + k)));
        site.steps = std::int64_t(k % kServerSteps);
      }
      if (round == 2) sites->prefetch(std::vector{population[2].key, population[3].key});
      sites->end(keys);
    }
  }

  FactorGap expected() { return factor_gap(state, phase, population, *sites); }
  FactorGap found() { return cuda_factor_gap(state, phase, population, *sites).value(); }
  void expect_same() {
    const FactorGap here = expected(), there = found(), again = found();
    EXPECT_GT(here.eta, 0.1);
    EXPECT_GT(here.lambda, 0.1);
    EXPECT_NEAR(there.eta / here.eta, 1, 1e-6);
    EXPECT_NEAR(there.lambda / here.lambda, 1, 1e-6);
    EXPECT_EQ(again.eta, there.eta);
    EXPECT_EQ(again.lambda, there.lambda);
  }

  Population population = some_clients();
  Phase phase;
  ServerState state;
  SiteShape shape;
  std::unique_ptr<SiteStore> home;
  std::unique_ptr<DeviceSites> sites;
};

TEST_P(CudaFactorGap, IsTheHosts) {
  visit();
  EXPECT_EQ(sites->in_gpu_memory(), GetParam().room);
  expect_same();
}

TEST_P(CudaFactorGap, IsTheHostsForStatesThatAreAtHomeOnly) {
  visit();
  for (const std::size_t k : {0, 3, 5}) {
    const std::vector<std::uint64_t> key{population[k].key};
    sites->propose(key[0], 3, sites->get(key[0]).value());
    sites->settle(3, key);
  }
  EXPECT_EQ(home->visited(), 3u);
  expect_same();
}

TEST_P(CudaFactorGap, IsTinyWhereQIsTheProduct) {
  if (phase.follows_rounds()) state.step_scales.clear();  // factors have missed nothing
  const std::int64_t steps = std::int64_t(state.step_scales.size());
  visit();
  Message product_of_all = phase.algorithm->point_estimate
                               ? flat_like(state.global.eta(), state.global.family())
                               : state.prior;
  for (std::size_t k = 0; k < kClients; ++k) {
    const std::uint64_t key = population[k].key;
    if (std::optional<SiteState> site = sites->get(key)) {
      product_of_all = product(product_of_all, site->factor);
      site->optimizer.steps = std::min(site->optimizer.steps, steps);
      sites->propose(key, 3, std::move(*site));
      sites->settle(3, std::vector{key});
    } else if (!GetParam().flat) {
      product_of_all = product(product_of_all,
                               power(state.unvisited.per_example, float(population[k].examples)));
    }
  }
  (state.factors.size() > 0 ? state.factors : state.global) = product_of_all;
  EXPECT_LT(found().eta, 1e-6);
  EXPECT_LT(found().lambda, 1e-6);
}

TEST_P(CudaFactorGap, IsNoNumberWhereAFactorIsNotFinite) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    sites->clear();
    Message broken = drawn(shape.family, 5);
    broken.eta().span()[kSize - 1] = wrong;
    visit(&broken);
    EXPECT_TRUE(std::isnan(expected().eta) && std::isnan(expected().lambda));
    EXPECT_TRUE(std::isnan(found().eta) && std::isnan(found().lambda));
  }
}

TEST_P(CudaFactorGap, IsNotKnownBeforeARound) {
  EXPECT_FALSE(cuda_factor_gap(state, phase, population, *sites).has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Phases, CudaFactorGap,
    testing::Values(Case{}, Case{.flat = true}, Case{.room = 0}, Case{.family = Family::diagonal},
                    Case{.clock = FactorClock::round},
                    Case{.family = Family::diagonal, .clock = FactorClock::round},
                    Case{.family = Family::diagonal, .clock = FactorClock::round, .room = 0},
                    Case{.algorithm = "fed_dyn"}, Case{.algorithm = "bayes_admm"},
                    Case{.algorithm = "bayes_admm", .family = Family::diagonal}));

}  // namespace
}  // namespace fedep
