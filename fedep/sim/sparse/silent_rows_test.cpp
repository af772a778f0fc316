// Factors of sparse models have numbers where their clients have words, and nowhere else.

#include "fedep/sim/sparse/silent_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/data/made_up/random_tags.h"
#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// Eight zeros in a row are left out: a row of a word that a client does not use.
constexpr std::size_t kTags = 8, kBatch = 4, kRounds = 6;

struct Case {
  std::string algorithm, method;
  double temperature = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.algorithm << "_" << c.method << (c.temperature == 1 ? "" : "_warm");
}

// Keeps states as they come, zeros and all.
class WholeStates final : public SiteStore {
 public:
  std::optional<SiteState> get(std::uint64_t client) const override {
    return find(settled_, client);
  }
  std::optional<SiteState> proposed(std::uint64_t client) const override {
    return find(proposed_, client);
  }
  void propose(std::uint64_t client, std::int64_t, SiteState state) override {
    proposed_[client] = std::move(state);
  }
  void settle(std::int64_t, std::span<const std::uint64_t> taken) override {
    for (const std::uint64_t client : taken) settled_[client] = proposed_.at(client);
    proposed_.clear();
  }
  void clear() override { settled_.clear(); }
  SiteManifest save() override { return {}; }
  void restore(const SiteManifest&) override {}
  void keep_only(std::span<const SiteManifest>) override {}
  std::size_t visited() const override { return settled_.size(); }

 private:
  using States = std::map<std::uint64_t, SiteState>;
  static std::optional<SiteState> find(const States& states, std::uint64_t client) {
    const auto found = states.find(client);
    return found == states.end() ? std::nullopt : std::optional(found->second);
  }
  States settled_, proposed_;
};

// Visits of all weights.
class OnAllWeights final : public LocalInference {
 public:
  explicit OnAllWeights(LocalInference& inner) : inner_(inner) {}
  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    EXPECT_EQ(visit.reach, nullptr);
    return inner_.infer(visit, numbers);
  }

 private:
  LocalInference& inner_;
};

// And without a word on what was silent.
class Unsilenced final : public LocalInference {
 public:
  explicit Unsilenced(LocalInference& inner) : inner_(inner) {}
  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    ClientRun run = inner_.infer(visit, numbers);
    run.silent.clear();
    return run;
  }

 private:
  LocalInference& inner_;
};

class World {
 public:
  explicit World(const Case& c) {
    recipe_.data = {.name = "random_tags",
                    .clients = 12,
                    .dimension = 200,
                    .examples = 8,
                    .tags = kTags,
                    .max_examples = 12};
    recipe_.model = {.name = "linear", .initial_scale = 0.1};
    recipe_.client = {.epochs = 3, .batch = kBatch, .remainder = Remainder::drop};
    recipe_.client.optimizer = {.lr = 0.7, .momentum = 0.9};
    recipe_.server.clients_per_round = 4;
    recipe_.server.prior = PriorSettings{.mean = 0.3, .precision = 0.7};
    PhaseSettings phase{.algorithm = c.algorithm, .rounds = kRounds};
    if (!c.method.empty()) phase.inference = InferenceSettings{.name = c.method, .epochs = 2};
    if (c.algorithm == "fed_dyn") phase.mu = 0.1;
    if (c.algorithm == "bayes_admm") phase.penalty = 1.7;
    if (c.temperature != 1) phase.temperature = c.temperature;
    recipe_.phases = {phase};
    recipe_ = resolved(recipe_);
    phases_ = plan_phases(recipe_, [](std::string_view name) { return find_method(name).family; });
    data_ = open_random_tags(recipe_.data, 3);
    population_.emplace(make_population(data_->clients()));
    learning_ = make_local_learning(*data_, *population_, recipe_, model());
  }

  std::unique_ptr<Model> model() const { return make_model(recipe_.model, data_->info()); }
  LocalInference& learning() { return *learning_; }
  const Population& population() const { return *population_; }
  const Dataset& data() const { return *data_; }
  const Phase& phase() const { return phases_[0]; }

  ServerState play(LocalInference& inference, SiteStore& sites) {
    const auto executor = make_serial(*population_, inference, &sites);
    V initial(model()->size());
    model()->initialise(1, initial.span());
    ServerState state =
        begin_phase(initial_server_state(recipe_.server, initial), phase(), 0, *population_);
    for (std::size_t round = 0; round < kRounds; ++round) {
      const RoundNumbers numbers = play_round(state, phase(), 1, *population_, *executor);
      EXPECT_EQ(numbers.answered, 4u);
    }
    return state;
  }

  // Words of a client.
  std::set<std::uint32_t> words(std::size_t client) const {
    std::vector<std::uint32_t> all(data_->clients()[client].second);
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    Batch batch;
    data_->train_batch(client, all, nullptr, batch);
    return {batch.sparse.columns.begin(), batch.sparse.columns.end()};
  }

 private:
  Recipe recipe_;
  std::vector<Phase> phases_;
  std::unique_ptr<Dataset> data_;
  std::optional<Population> population_;
  std::unique_ptr<LocalInference> learning_;
};

class SparseFactors : public testing::TestWithParam<Case> {};

TEST_P(SparseFactors, HaveNumbersInRowsOfTheirClientsWordsAlone) {
  World world(GetParam());
  const auto sites = make_memory_store();
  const ServerState state = world.play(world.learning(), *sites);
  ASSERT_GE(sites->visited(), 4u);
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    const auto site = sites->get(world.population()[k].key);
    if (!site) continue;
    const std::set<std::uint32_t> words = world.words(k);
    ASSERT_LT(words.size(), 120u);
    std::set<std::size_t> rows;
    const auto look = [&](std::span<const float> numbers) {
      if (numbers.size() == 1) return;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(numbers[i]) != 0) rows.insert(i / kTags);
      }
    };
    look(site->factor.eta().span());
    look(site->factor.lambda_span());
    // Who has less than a batch makes no step.
    if (world.population()[k].examples >= kBatch) {
      EXPECT_TRUE(rows.contains(200)) << "its bias";
    }
    rows.erase(200);
    for (const std::size_t row : rows) EXPECT_TRUE(words.contains(std::uint32_t(row))) << row;
    // A word may be in the one example that no batch had.
    EXPECT_GE(rows.size() + 40, words.size());
    sites->look(world.population()[k].key, [&](const StoredSite& stored) {
      EXPECT_LE(stored.bytes(), (words.size() + 1) * (2 * kTags * sizeof(float) + 32) + 64);
    });
  }
  EXPECT_EQ(state.round, std::int64_t(kRounds));
}

TEST_P(SparseFactors, AreThoseOfAStoreThatKeepsEveryZero) {
  World world(GetParam());
  const auto sites = make_memory_store();
  WholeStates whole;
  EXPECT_EQ(world.play(world.learning(), *sites), world.play(world.learning(), whole));
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    const std::uint64_t key = world.population()[k].key;
    EXPECT_EQ(sites->get(key), whole.get(key));
  }
}

TEST_P(SparseFactors, AreThoseOfVisitsOfAllWeights) {
  World world(GetParam());
  OnAllWeights on_all(world.learning());
  const auto sites = make_memory_store(), others = make_memory_store();
  EXPECT_EQ(world.play(world.learning(), *sites), world.play(on_all, *others));
  std::size_t reached = 0;
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    const ClientInfo& client = world.population()[k];
    EXPECT_EQ(sites->get(client.key), others->get(client.key));
    reached += world.learning().reach(world.phase(), client).is_part();
  }
  EXPECT_EQ(reached, world.population().size());
}

// What a client remembers beyond its words, from wherever it has that, is not lost.
TEST(FactorsOfSparseModels, ThatSayMoreThanTheirClientsWordsArePlayedOnAllWeights) {
  World world({"fed_ep", "laplace"});
  OnAllWeights on_all(world.learning());
  const auto play = [&](LocalInference& inference) {
    auto sites = make_memory_store();
    SiteState state{.factor = flat_like(V(world.model()->size()), Family::diagonal),
                    .optimizer = {}};
    for (float& x : state.factor.eta().span()) x = 0.01f;
    std::vector<std::uint64_t> keys;
    for (std::size_t k = 0; k < world.population().size(); ++k) {
      keys.push_back(world.population()[k].key);
      sites->propose(keys.back(), -1, state);
    }
    sites->settle(-1, keys);
    return world.play(inference, *sites);
  };
  EXPECT_EQ(play(world.learning()), play(on_all));
}

// What is left out is rounding, and there would be some.
TEST_P(SparseFactors, LeaveNothingOutButRounding) {
  World world(GetParam());
  Unsilenced unsilenced(world.learning());
  const auto sites = make_memory_store(), others = make_memory_store();
  const ServerState state = world.play(world.learning(), *sites);
  const ServerState other = world.play(unsilenced, *others);
  const auto near = [](std::span<const float> a, std::span<const float> b) {
    double gap = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      gap = std::max(gap, double(std::fabs(a[i] - b[i])));
      size = std::max(size, double(std::fabs(a[i])));
    }
    EXPECT_LT(gap, 1e-5 * size);
  };
  near(state.global.eta().span(), other.global.eta().span());
  near(state.global.lambda_span(), other.global.lambda_span());
  std::size_t kept = 0, unsilenced_bytes = 0;
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    const std::uint64_t key = world.population()[k].key;
    sites->look(key, [&](const StoredSite& stored) { kept += stored.bytes(); });
    others->look(key, [&](const StoredSite& stored) { unsilenced_bytes += stored.bytes(); });
  }
  if (world.phase().algorithm->point_estimate) {
    EXPECT_EQ(kept, unsilenced_bytes);  // of means alone: what did not move has no rounding
  } else {
    EXPECT_LT(kept, unsilenced_bytes);
  }
}

// Nobody moves what nobody knows of: the prior stays, in every bit.
TEST_P(SparseFactors, LeaveThePriorOfWordsThatNobodyUses) {
  World world(GetParam());
  const auto sites = make_memory_store();
  const ServerState state = world.play(world.learning(), *sites);
  if (world.phase().algorithm->step == StepRule::admm)
    return;  // whose server goes to the prior itself
  std::set<std::uint32_t> used;
  for (std::size_t k = 0; k < world.population().size(); ++k) {
    for (const std::uint32_t word : world.words(k)) used.insert(word);
  }
  std::size_t unused = 0;
  for (std::uint32_t word = 0; word < 200; ++word) {
    if (used.contains(word)) continue;
    ++unused;
    for (std::size_t i = word * kTags; i < (word + 1) * kTags; ++i) {
      EXPECT_EQ(state.global.eta()[i], state.prior.eta()[i]);
    }
  }
  EXPECT_GT(unused, 3u);
}

INSTANTIATE_TEST_SUITE_P(Names, SparseFactors,
                         testing::Values(Case{"fed_ep", "laplace"}, Case{"fed_ep", "ngvi"},
                                         Case{"fed_ep", "laplace", 2.3}, Case{"pvi", "ngvi"},
                                         Case{"fed_lap", "map"}, Case{"fed_lap_cov", "laplace"},
                                         Case{"bayes_admm", "laplace"}, Case{"fed_dyn", ""}),
                         testing::PrintToStringParamName());

// A method that knows of every weight keeps all of it.
TEST(SilentWeights, AreNoneWhereAMethodKnowsBetter) {
  for (const std::string method : {"scaled_identity", "ngvi"}) {
    World world({"fed_ep", method});
    struct Looks final : LocalInference {
      explicit Looks(LocalInference& learning) : inner(learning) {}
      ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
        ClientRun run = inner.infer(visit, numbers);
        silent += run.silent.size();
        return run;
      }
      LocalInference& inner;
      std::size_t silent = 0;
    } looks(world.learning());
    const auto sites = make_memory_store();
    world.play(looks, *sites);
    EXPECT_EQ(looks.silent > 0, method == "ngvi") << method;
  }
}

// Which settings let a visit be of a client's own weights.
TEST(OwnWeights, AreAllThatMovesUnlessASettingIsOfAllWeights) {
  World world({"fed_ep", "ngvi"});
  Recipe recipe;
  const auto alone = [&](const auto& change) {
    Recipe changed = recipe;
    Phase phase = world.phase();
    change(changed, phase);
    return moves_own_weights_alone(changed, phase);
  };
  EXPECT_TRUE(alone([](Recipe&, Phase&) {}));
  EXPECT_TRUE(alone([](Recipe&, Phase& p) { p.factor_optimizer.momentum = 0.9; }));
  EXPECT_FALSE(alone([](Recipe& r, Phase&) { r.client.weight_decay = 0.1; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.inference.initial_scale = 0.1; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.inference.langevin = true; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.inference.clip_std = 2; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.inference.name = "scaled_identity"; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.inference.name = "sample_moments"; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.factors = FactorStart::carry_mean; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.factor_optimizer.name = "adagrad"; }));
  EXPECT_FALSE(alone([](Recipe&, Phase& p) { p.cavity = CavityKind::share; }));
}

TEST(KeepsPrecisions, LooksAtEveryBitOfSilentWeights) {
  const Message cavity(V{1, 2, 3, 4}, V{5, 6, 7, 8});
  const std::vector<Range> silent{{0, 1}, {2, 4}};
  EXPECT_TRUE(keeps_precisions(Message(V{9, 9, 9, 9}, V{5, 0, 7, 8}), cavity, silent));
  EXPECT_FALSE(keeps_precisions(Message(V{1, 2, 3, 4}, V{5, 6, 7, 8.000001f}), cavity, silent));
  EXPECT_TRUE(keeps_precisions(Message(V{1, 2}, 3.0f), Message(V{1, 2}, 3.0f), silent));
  EXPECT_FALSE(keeps_precisions(Message(V{1, 2}, 3.0f), Message(V{1, 2}, 2.0f), silent));
}

}  // namespace
}  // namespace fedep
