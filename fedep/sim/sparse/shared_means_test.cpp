// Factors with one precision for all weights, of sparse models: numbers of their clients' own words,
// and for all other words shares of q's means. They are what visits of all weights leave, to rounding.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/data/made_up/random_tags.h"
#include "fedep/inference/method.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/model/registry.h"
#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"
#include "fedep/sim/sparse/sparse_factors.h"
#include "fedep/store/scratch_store.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kTags = 8, kWords = 200;

struct Setting {
  std::string name;
  bool carries_mean = false;
  double weight_decay = 0;
  double clip = 0;
  double prior_mean = 0.3;
  bool averages = false;
  std::string guard = "count";
};

std::ostream& operator<<(std::ostream& out, const Setting& s) { return out << s.name; }

class World {
 public:
  World(const Setting& s, bool sparse) {
    recipe_.data = {.name = "random_tags",
                    .clients = 12,
                    .dimension = int(kWords),
                    .examples = 8,
                    .tags = int(kTags),
                    .max_examples = 12};
    recipe_.model = {.name = "linear", .initial_scale = 0.1};
    recipe_.client = {.epochs = 3, .batch = 4, .remainder = Remainder::keep};
    recipe_.client.optimizer = {.lr = 0.7, .momentum = 0.9};
    recipe_.client.weight_decay = s.weight_decay;
    recipe_.server.clients_per_round = 4;
    recipe_.server.prior = PriorSettings{.mean = s.prior_mean, .precision = 0.7};
    recipe_.checkpoint.sparse = sparse;
    PhaseSettings phase{.algorithm = "fed_ep", .rounds = 9};
    phase.inference = InferenceSettings{.name = "scaled_identity", .alpha = 0.2};
    phase.inference->average_within_epoch = s.averages;
    phase.factors = s.carries_mean ? FactorStart::carry_mean : FactorStart::flat;
    phase.clip = s.clip;
    if (s.guard == "skip") phase.guard.mode = GuardMode::skip;
    recipe_.phases = {phase};
    recipe_ = resolved(recipe_);
    phases_ = plan_phases(recipe_, [](std::string_view name) { return find_method(name).family; });
    mark_shared_means(recipe_, phases_);
    EXPECT_EQ(phases_[0].shares_means, sparse);
    data_ = open_random_tags(recipe_.data, 3);
    population_.emplace(make_population(data_->clients()));
    learning_ = make();
    model_ = make_model(recipe_.model, data_->info());
  }

  std::unique_ptr<LocalInference> make() const {
    return make_local_learning(*data_, *population_, recipe_,
                               make_model(recipe_.model, data_->info()));
  }
  const Population& population() const { return *population_; }
  const Phase& phase() const { return phases_[0]; }

  ServerState first() const {
    V initial(model_->size());
    model_->initialise(1, initial.span());
    return begin_phase(initial_server_state(recipe_.server, initial), phase(), 0, *population_);
  }
  void play(ServerState& state, SiteStore& sites, int rounds) {
    play_on(*make_serial(*population_, *learning_, &sites), state, rounds);
  }
  void play_on(Executor& executor, ServerState& state, int rounds) const {
    for (int i = 0; i < rounds; ++i) play_round(state, phase(), 1, *population_, executor);
  }
  ServerState played(SiteStore& sites, int rounds = 9) {
    ServerState state = first();
    play(state, sites, rounds);
    return state;
  }
  ServerState played_on_threads(SiteStore& sites) const {
    ServerState state = first();
    play_on(*make_threads(
                *population_, [this] { return make(); }, &sites, 3),
            state, 9);
    return state;
  }

  // A client's factor with all that it refers to.
  V whole(const ServerState& state, SiteStore& sites, std::uint64_t key) const {
    const SiteState site = sites.get(key).value();
    V eta = site.factor.eta();
    for (const MeanShare& of : site.shares) {
      const MeanShelf::Mean held = of.round == kUnvisited ? nullptr : sites.means().at(of.round);
      const V& mean = held ? *held : state.unvisited.per_example.eta();
      for (std::size_t i = 0; i < eta.size(); ++i) eta[i] += float(of.share * double(mean[i]));
    }
    return eta;
  }

 private:
  Recipe recipe_;
  std::vector<Phase> phases_;
  std::unique_ptr<Dataset> data_;
  std::optional<Population> population_;
  std::unique_ptr<LocalInference> learning_;
  std::unique_ptr<Model> model_;
};

// The largest difference over the largest number.
double apart(std::span<const float> a, std::span<const float> b) {
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    gap = std::max(gap, double(std::fabs(a[i] - b[i])));
    size = std::max(size, double(std::fabs(b[i])));
  }
  return gap / size;
}

class SharedMeans : public testing::TestWithParam<Setting> {};

TEST_P(SharedMeans, AndOwnRowsAreTheFactorsThatVisitsOfAllWeightsLeave) {
  World sparse(GetParam(), true), dense(GetParam(), false);
  const auto sites = make_memory_store(), others = make_memory_store();
  const ServerState state = sparse.played(*sites), other = dense.played(*others);
  EXPECT_LT(apart(state.global.eta().span(), other.global.eta().span()), 5e-6);
  EXPECT_NEAR(state.global.lambda_scalar(), other.global.lambda_scalar(), 1e-5);
  std::size_t visited = 0, again = 0;
  for (std::size_t k = 0; k < sparse.population().size(); ++k) {
    const std::uint64_t key = sparse.population()[k].key;
    const auto site = sites->get(key), expected = others->get(key);
    ASSERT_EQ(site.has_value(), expected.has_value());
    if (!site) continue;
    ++visited;
    again += site->shares.size() > 1;
    EXPECT_LT(apart(sparse.whole(state, *sites, key).span(), expected->factor.eta().span()), 2e-5);
    EXPECT_FLOAT_EQ(site->factor.lambda_scalar(), expected->factor.lambda_scalar());
  }
  EXPECT_GE(visited, 10u);
  EXPECT_GE(again, 8u) << "who is met twice refers to two rounds";
}

// Factors keep the part of a step that the server kept of its own.
TEST_P(SharedMeans, AreHalvedWithAHalvedStep) {
  class Halves final : public Executor {
   public:
    explicit Halves(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}
    Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
      return inner_->play(round, clients);
    }
    void settle(const RoundTask& round, std::span<const std::size_t> taken,
                const StepPart& part) override {
      inner_->settle(round, taken, {.renormalised = part.renormalised, .kept = part.kept / 2});
    }

   private:
    std::unique_ptr<Executor> inner_;
  };
  World sparse(GetParam(), true), dense(GetParam(), false);
  const auto sites = make_memory_store(), others = make_memory_store();
  ServerState state = sparse.first(), other = dense.first();
  const auto learning = sparse.make(), other_learning = dense.make();
  Halves executor(make_serial(sparse.population(), *learning, sites.get()));
  Halves other_executor(make_serial(dense.population(), *other_learning, others.get()));
  sparse.play_on(executor, state, 6);
  dense.play_on(other_executor, other, 6);
  std::size_t visited = 0;
  for (std::size_t k = 0; k < sparse.population().size(); ++k) {
    const std::uint64_t key = sparse.population()[k].key;
    const auto expected = others->get(key);
    if (!expected) continue;
    ++visited;
    EXPECT_LT(apart(sparse.whole(state, *sites, key).span(), expected->factor.eta().span()), 2e-5);
    EXPECT_FLOAT_EQ(sites->get(key)->factor.lambda_scalar(), expected->factor.lambda_scalar());
  }
  EXPECT_GE(visited, 8u);
}

TEST_P(SharedMeans, LeaveFactorsWithNumbersOfTheirClientsWords) {
  World world(GetParam(), true);
  const auto sites = make_memory_store();
  world.played(*sites);
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    sites->look(world.population()[k].key, [&](const StoredSite& stored) {
      // At most 12 examples of some ten words each, and the bias.
      EXPECT_LT(stored.factor.eta.values.size(), kWords * kTags * 2 / 3);
      EXPECT_LE(stored.shares.size(), 10u);
    });
  }
}

TEST_P(SharedMeans, LeaveQTheProductOfItsFactors) {
  if (GetParam().guard == "skip") return;
  World world(GetParam(), true);
  const auto sites = make_memory_store();
  const ServerState state = world.played(*sites);
  const FactorGap gap = factor_gap(state, world.phase(), world.population(), *sites);
  EXPECT_LT(gap.eta, 1e-6);
  EXPECT_LT(gap.lambda, 1e-6);
}

TEST_P(SharedMeans, HaveTheSameBitsOnThreadsAndInEveryStore) {
  World world(GetParam(), true);
  TemporaryFolder folder;
  const auto memory = make_memory_store();
  const ServerState expected = world.played(*memory);
  std::vector<std::unique_ptr<SiteStore>> stores;
  stores.push_back(make_memory_store(std::make_unique<SiteFiles>(folder.path() / "memory")));
  stores.push_back(make_disk_store(folder.path() / "disk"));
  stores.push_back(
      make_scratch_store(folder.path(), std::make_unique<SiteFiles>(folder.path() / "saved")));
  for (const auto& store : stores) {
    EXPECT_EQ(world.played_on_threads(*store), expected);
    for (std::size_t k = 0; k < world.population().size(); ++k) {
      const std::uint64_t key = world.population()[k].key;
      EXPECT_EQ(store->get(key), memory->get(key));
    }
  }
}

TEST_P(SharedMeans, GoOnFromWhatWasSaved) {
  World world(GetParam(), true);
  TemporaryFolder folder;
  const auto memory = make_memory_store();
  const ServerState expected = world.played(*memory);
  SiteManifest saved;
  ServerState state;
  {
    const auto disk = make_disk_store(folder.path() / "disk");
    state = world.played(*disk, 5);
    saved = disk->save();
    disk->keep_only(std::vector{saved});
    ServerState lost = state;
    world.play(lost, *disk, 2);  // and then the power fails
  }
  EXPECT_EQ(without_means(saved).size() + 5, saved.size());
  const auto disk = make_disk_store(folder.path() / "disk");
  disk->restore(saved);
  disk->keep_only(std::vector{saved});
  world.play(state, *disk, 4);
  EXPECT_EQ(state, expected);
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    const std::uint64_t key = world.population()[k].key;
    EXPECT_EQ(disk->get(key), memory->get(key));
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, SharedMeans,
                         testing::Values(Setting{.name = "flat"},
                                         Setting{.name = "carries_mean", .carries_mean = true},
                                         Setting{.name = "decay", .weight_decay = 0.05},
                                         Setting{.name = "clip", .clip = 2.0},
                                         Setting{.name = "averages", .averages = true},
                                         Setting{.name = "skip", .guard = "skip"}),
                         testing::PrintToStringParamName());

// A phase that is over needs none of them.
TEST(SharedMeansOfAPhase, AreGoneWithItsFactors) {
  TemporaryFolder folder;
  World world({.name = "flat"}, true);
  const auto disk = make_disk_store(folder.path());
  world.played(*disk, 3);
  EXPECT_EQ(disk->means().manifest().size(), 3u);
  disk->clear();
  EXPECT_TRUE(disk->means().manifest().empty());
  disk->keep_only({});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Nothing is read beyond what there is, whatever a file says.
TEST(SharedMeansOfAPhase, ThatAreNotThereAreRefused) {
  World world({.name = "flat"}, true);
  for (const std::int64_t round : {std::int64_t(7), kUnvisited}) {
    const auto sites = make_memory_store();
    ServerState state = world.played(*sites, 3);
    std::vector<std::uint64_t> keys;
    for (std::size_t k = 0; k < world.population().size(); ++k) {
      keys.push_back(world.population()[k].key);
      const SiteState own{.factor = flat_like(state.global.eta(), Family::isotropic),
                          .optimizer = {},
                          .shares = {{round, 0.5}}};
      sites->propose(keys.back(), 2, own);
    }
    sites->settle(2, keys);
    EXPECT_THROW(factor_gap(state, world.phase(), world.population(), *sites), InputError) << round;
    EXPECT_THROW(world.play(state, *sites, 1), InputError) << round;
  }
}

TEST(SharedMeansOfAPhase, ThatAreDamagedAreRefusedByName) {
  TemporaryFolder folder;
  World world({.name = "flat"}, true);
  SiteManifest saved;
  {
    const auto disk = make_disk_store(folder.path());
    world.played(*disk, 3);
    saved = disk->save();
  }
  const std::filesystem::path file = site_file(folder.path(), mean_key(1), 1);
  ASSERT_TRUE(std::filesystem::exists(file));
  std::filesystem::resize_file(file, 100);
  EXPECT_THROW(make_disk_store(folder.path())->restore(saved), InputError);
}

}  // namespace
}  // namespace fedep
