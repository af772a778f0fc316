// Whole visits, from cavity to delta: clients that have nothing or little to say, and labels as the
// reference draws them.

#include "fedep/sim/chain/local_learning.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "fedep/data/made_up/regression.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/inference/infer_cohort.h"
#include "fedep/model/linear.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

class LocalVisits : public testing::Test {
 protected:
  LocalVisits() {
    recipe_.client = {.epochs = 3, .batch = 5, .remainder = Remainder::drop};
    recipe_.client.optimizer = {.lr = 0.01, .momentum = 0.9};
  }

  std::unique_ptr<LocalInference> learning() {
    return make_local_learning(
        *data_, population_, recipe_,
        make_linear({.features = 3, .outputs = 1, .target = TargetKind::real}));
  }

  // By an algorithm and a method, on a client whose factor is `factor` where it has one.
  Report visit(std::string_view algorithm, std::string_view method, const ClientInfo& client) {
    InferenceSettings inference{.name = std::string(method), .alpha = 0.5, .shrinkage = 0.01};
    const bool point = find_algorithm(algorithm).point_estimate;
    TestRound round(
        algorithm, inference,
        point ? from_mean(V{1, 2, 3, 4}, 1.0f) : from_mean(V{1, 2, 3, 4}, V{30, 40, 50, 60}));
    const double share = double(client.examples) / 100;
    return play_visit(round.task(), {.client = 0, .weight = 1, .share = share}, client,
                      sites_.get(), *learning());
  }

  Recipe recipe_;
  std::unique_ptr<Dataset> data_ =
      open_regression({.name = "regression", .clients = 3, .dimension = 3, .examples = 20}, 3);
  std::vector<ClientInfo> clients_ = clients_of(data_->clients());
  Population population_{clients_};
  std::unique_ptr<SiteStore> sites_ = make_memory_store();
};

TEST_F(LocalVisits, OfAClientWithoutDataReturnAZeroDelta) {
  clients_[1].examples = 0;
  for (const Algorithm& algorithm : algorithms()) {
    const Message factor = algorithm.point_estimate ? Message(V{3, -1, 2, 1}, 0.0f)
                                                    : Message(V{3, -1, 2, 1}, V{4, 5, 6, 7});
    sites_->propose(clients_[1].key, 0, {.factor = factor, .optimizer = {}});
    sites_->settle(0, std::vector{clients_[1].key});
    for (const Method& method : methods()) {
      const Report report = visit(algorithm.name, method.name, clients_[1]);
      ASSERT_EQ(report.outcome, Outcome::delta) << algorithm.name << method.name;
      for (const std::int64_t x : report.delta.eta) EXPECT_EQ(x, 0);
      for (const std::int64_t x : report.delta.lambda) EXPECT_EQ(x, 0);
      EXPECT_EQ(report.numbers.steps, 0u);
      if (!remembers(algorithm.cavity)) continue;
      EXPECT_EQ(sites_->proposed(clients_[1].key)->factor, factor) << algorithm.name;
    }
  }
}

TEST_F(LocalVisits, OfAClientWithLessThanABatchSendNoMovementOfTheMean) {
  recipe_.client.batch = 1000;
  const Report report = visit("fed_sep", "scaled_identity", clients_[0]);
  ASSERT_EQ(report.outcome, Outcome::delta);
  EXPECT_EQ(report.numbers.steps, 0u);
  const TestRound same("fed_sep", {}, from_mean(V{1, 2, 3, 4}, V{30, 40, 50, 60}));
  const Message sent = from_grid(same.task().grid, report.delta);
  // ΔΛ is the client's own (this q was no fixed point); Δη just keeps the mean.
  for (std::size_t i = 0; i < 4; ++i) {
    const Message& q = same.task().global;
    const float lambda = q.lambda_vector()[i] + sent.lambda_vector()[i];
    EXPECT_NEAR((q.eta()[i] + sent.eta()[i]) / lambda, same.task().mean[i], 1e-6);
  }
}

TEST_F(LocalVisits, OfAClientWithLessThanABatchCountInTheAverage) {
  Phase phase{.algorithm = &find_algorithm("fed_sep"),
              .rounds = 1,
              .cavity = CavityKind::share,
              .alpha = 0.5,
              .server_optimizer = {.lr = 1},
              .clients_per_round = 3};
  phase.inference = {.name = "scaled_identity", .alpha = 0.5};
  std::vector<std::size_t> sizes;
  for (const ClientInfo& client : clients_) sizes.push_back(client.examples);
  const std::size_t smallest =
      std::size_t(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
  recipe_.client.batch = int(sizes[smallest] + 1);

  const Population population(clients_);
  const auto learner = learning();
  const auto serial = make_serial(population, *learner, nullptr);
  ServerState state = begin_phase(initial_server_state({}, V{1, 2, 3, 4}), phase, 0, population);
  const Message before = state.global;

  // The same visits one by one, undamped.
  TestRound round("fed_sep", phase.inference, before);
  round.task().seed = 1;
  round.task().round = 0;
  V sum(4);
  std::size_t moved = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const double share = double(sizes[k]) / double(population.examples());
    const Report report = play_visit(round.task(), {.client = k, .weight = 1, .share = share},
                                     clients_[k], nullptr, *learner);
    EXPECT_EQ(report.numbers.steps > 0, k != smallest);
    moved += report.numbers.steps > 0;
    const V eta = from_grid(round.task().grid, report.delta).eta();
    if (k == smallest) {
      for (const float x : eta) EXPECT_NEAR(x, 0, 1e-5);
    }
    sum = sum + eta;
  }
  ASSERT_EQ(moved, 2u);

  const RoundNumbers numbers = play_round(state, phase, 1, population, *serial);
  EXPECT_EQ(numbers.answered, 3u);
  EXPECT_NEAR(state.global.lambda_scalar() / before.lambda_scalar(), 1, 1e-6);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(state.global.eta()[i] - before.eta()[i], sum[i] / 3, 1e-4);
    EXPECT_GT(std::abs(sum[i]), 1e-2);
  }
}

// One example with features {1, 2} and no tag, three tags, all weights zero: σ = ½ for every tag.
class TagLabels : public testing::Test {
 protected:
  TagLabels() {
    batch_.size = 1;
    batch_.dense = {1, 2};
    batch_.tags.offsets = {0, 0};
    ClientRows clients, nobody;
    clients.add("a", 1);
    DatasetInfo info{.name = "tags",
                     .features = {2},
                     .target = TargetKind::tags,
                     .outputs = 3,
                     .feature_names = {},
                     .output_names = {}};
    data_ = memory_dataset(std::move(info), {std::move(clients), batch_rows(batch_)},
                           {std::move(nobody), batch_rows({})});
  }

  // The Fisher information that Laplace adds to a flat cavity, for labels drawn in this round.
  V fisher(LabelSampler sampler, std::int64_t round_index) {
    const auto model = make_linear({.features = 2, .outputs = 3, .target = TargetKind::tags});
    InferenceSettings inference{.name = "laplace"};
    inference.epochs = 1;
    TestRound round("fed_sep", inference, Message(V(9), 1.0f));
    round.task().round = round_index;
    const ClientInfo client = clients_of(data_->clients())[0];
    const Visit visit = round.visit(client, Message(V(9), V(9)));
    ChainSettings settings;
    settings.client = {.epochs = 1, .batch = 100, .remainder = Remainder::drop};  // no step
    settings.label_sampler = sampler;
    const auto cohort = make_cpu_cohort(*model, {{*data_, 0, visit, settings}});
    return infer_cohort(*cohort, *round.phase.algorithm, inference)[0].tilted.lambda_vector();
  }

  Batch batch_;
  std::unique_ptr<Dataset> data_;
};

TEST_F(TagLabels, DrawnFromTheModelAreZeroOrOneForEachTag) {
  for (std::int64_t round = 0; round < 20; ++round) {
    const V found = fisher(LabelSampler::model, round);
    for (std::size_t j = 0; j < 3; ++j) {  // features 1 and 2, and the bias
      const double x = j == 2 ? 1 : double(batch_.dense[j]);
      for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[3 * j + c], x * x * 0.25 / 9, 1e-7);
    }
  }
}

TEST_F(TagLabels, AsTheReferenceDrawsThemAreAnIndexForAllTags) {
  std::map<int, int> drawn;
  for (std::int64_t round = 0; round < 60; ++round) {
    const V found = fisher(LabelSampler::softmax_index, round);
    // x² (½ - index)² / 3², the same for every tag; of index 0 and 1 it is the same too.
    const int index = double(found[6]) * 9 > 1 ? 2 : 0;
    ++drawn[index];
    for (std::size_t j = 0; j < 3; ++j) {
      const double x = j == 2 ? 1 : double(batch_.dense[j]);
      const double expected = x * x * (0.5 - index) * (0.5 - index) / 9;
      for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[3 * j + c], expected, 1e-6);
    }
  }
  EXPECT_NEAR(drawn[2], 20, 14);  // a third of them
}

}  // namespace
}  // namespace fedep
