// Factors that refer to q's means, where clients follow one law in all weights but their own.

#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/round/collector.h"
#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/play_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kClients = 5, kWeights = kClients + 3;

// Client k's data speak of weight k, and of no other. What becomes of the others is said or left to be
// seen.
class Lawful final : public LocalInference {
 public:
  Lawful(const Population& population, bool says) : population_(population), says_(says) {}

  ClientRun infer(const Visit& visit, VisitNumbers&) override {
    const std::size_t own = population_.find(visit.client.key);
    const double lambda = visit.cavity.lambda_scalar() + 0.3 * double(visit.client.examples);
    const SilentLaw law{.by_mean = 0.6 * lambda, .by_cavity = 0.4 + 0.05 * double(own)};
    V eta(kWeights);
    for (std::size_t i = 0; i < kWeights; ++i) {
      eta[i] = float(law.by_mean * double(visit.round.mean[i]) +
                     law.by_cavity * double(visit.cavity.eta()[i]));
    }
    eta[own] += 2;
    ClientRun run;
    run.tilted = Message(std::move(eta), float(lambda));
    if (!says_) return run;
    run.silent = complement({{own, own + 1}}, kWeights);
    run.silent_law = law;
    return run;
  }

 private:
  const Population& population_;
  bool says_;
};

struct Setting {
  std::string name;
  FactorStart factors = FactorStart::flat;
  double kept = 1;  // of each step of a factor
  double lr = 1;
};

std::ostream& operator<<(std::ostream& out, const Setting& s) { return out << s.name; }

class World final : public Executor {
 public:
  World(const Setting& setting, bool shares)
      : population_(make_population({{"a", 10}, {"b", 20}, {"c", 30}, {"d", 40}, {"e", 50}})),
        clients_(population_, shares),
        kept_(setting.kept) {
    phase_ = {.algorithm = &find_algorithm("fed_ep"),
              .rounds = 12,
              .family = Family::isotropic,
              .cavity = CavityKind::own_factor,
              .damping = {.rule = DampingRule::one_over_k},
              .factors = setting.factors,
              .alpha = 0.2,
              .factor_optimizer = {.lr = setting.lr},
              .clients_per_round = 2,
              .shares_means = shares};
    V start(kWeights);
    for (std::size_t i = 0; i < kWeights; ++i) start[i] = 0.1f * float(i) - 0.3f;
    ServerSettings server{.prior = PriorSettings{.mean = 0.5, .precision = 2}};
    state_ = begin_phase(initial_server_state(server, start), phase_, 0, population_);
  }

  void play(int rounds) {
    for (int i = 0; i < rounds; ++i) play_round(state_, phase_, 1, population_, *this);
  }
  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    Collector answers(round);
    for (const ClientTask& task : clients) {
      answers.add(play_visit(round, task, population_[task.client], sites_.get(), clients_));
    }
    return std::move(answers).all();
  }
  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    settle_visits(round, population_, taken, {part.renormalised, part.kept * kept_}, *sites_);
    keep_mean(round, *sites_);
  }

  // A client's factor, with what it refers to.
  Message whole(std::size_t client) const {
    const SiteState site = sites_->get(population_[client].key).value();
    V eta = site.factor.eta();
    for (const MeanShare& of : site.shares) {
      const V& mean = of.round == kUnvisited ? state_.unvisited.per_example.eta()
                                             : *sites_->means().at(of.round);
      for (std::size_t i = 0; i < eta.size(); ++i) eta[i] += float(of.share * double(mean[i]));
    }
    return {std::move(eta), site.factor.lambda_scalar()};
  }
  FactorGap gap() const { return factor_gap(state_, phase_, population_, *sites_); }

  const ServerState& state() const { return state_; }
  SiteStore& sites() { return *sites_; }
  const Population& population() const { return population_; }

 private:
  Population population_;
  Lawful clients_;
  Phase phase_;
  double kept_;
  std::unique_ptr<SiteStore> sites_ = make_memory_store();
  ServerState state_;
};

class SharedMeans : public testing::TestWithParam<Setting> {};

void expect_near(const Message& a, const Message& b) {
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.eta()[i], b.eta()[i], 2e-5) << i;
  EXPECT_NEAR(a.lambda_scalar(), b.lambda_scalar(), 1e-4);
}

TEST_P(SharedMeans, SayWhatWholeFactorsSay) {
  World shares(GetParam(), true), whole(GetParam(), false);
  shares.play(12);
  whole.play(12);
  expect_near(shares.state().global, whole.state().global);
  for (std::size_t k = 0; k < kClients; ++k) {
    const SiteState site = shares.sites().get(shares.population()[k].key).value();
    EXPECT_GE(site.shares.size(), 2u);
    expect_near(shares.whole(k), whole.whole(k));
    for (std::size_t i = 0; i < kWeights; ++i) EXPECT_EQ(site.factor.eta()[i] != 0, i == k);
  }
}

TEST_P(SharedMeans, LeaveQTheProductOfItsFactors) {
  if (GetParam().kept != 1 || GetParam().lr != 1) return;  // q made other steps
  World world(GetParam(), true);
  for (int round = 0; round < 12; ++round) {
    world.play(1);
    EXPECT_LT(world.gap().eta, 1e-6);
    EXPECT_LT(world.gap().lambda, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SharedMeans,
    testing::Values(Setting{.name = "flat"},
                    Setting{.name = "carries_mean", .factors = FactorStart::carry_mean},
                    Setting{.name = "half", .kept = 0.5},
                    Setting{.name = "quarter", .factors = FactorStart::carry_mean, .kept = 0.25},
                    Setting{.name = "slow", .lr = 0.7}),
    testing::PrintToStringParamName());

// A step that the server did not make refers to nothing.
TEST(SharedMeansOfNoStep, AreNotKept) {
  World world({.name = "nothing", .kept = 0}, true);
  world.play(3);
  for (std::size_t k = 0; k < kClients; ++k) {
    world.sites().look(world.population()[k].key,
                       [](const StoredSite& site) { EXPECT_TRUE(site.shares.empty()); });
  }
}

}  // namespace
}  // namespace fedep
