// The sparse chain against the dense one on the same model, data and visit: the law is that nobody
// can tell them apart but by rounding, whatever is asked when.

#include "fedep/sim/sparse/sparse_chain.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/data/memory_dataset.h"
#include "fedep/inference/infer_cohort.h"
#include "fedep/message/error.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kWords = 60;
constexpr std::size_t kTags = 7;
constexpr std::size_t kSize = (kWords + 1) * kTags;
constexpr std::size_t kExamples = 23;

// Questions of three words each out of the first `words` of kWords.
std::unique_ptr<Dataset> questions(std::uint32_t words) {
  Stream stream({.seed = 5, .purpose = Purpose::test});
  Batch rows;
  rows.size = kExamples;
  for (std::size_t i = 0; i < kExamples; ++i) {
    for (const std::size_t word : sample_without_replacement(stream, words, 3)) {
      rows.sparse.columns.push_back(std::uint32_t(word));
      rows.sparse.values.push_back(0.2f + float(stream.uniform()));
    }
    rows.sparse.offsets.push_back(std::uint32_t(rows.sparse.columns.size()));
    for (const std::size_t tag : sample_without_replacement(stream, kTags, 2)) {
      rows.tags.columns.push_back(std::uint32_t(tag));
    }
    rows.tags.offsets.push_back(std::uint32_t(rows.tags.columns.size()));
  }
  ClientRows train, test;
  train.add("asker", kExamples);
  test.add("asker", kExamples);
  const DatasetInfo info{.name = "questions",
                         .features = {std::int64_t(kWords)},
                         .sparse = true,
                         .target = TargetKind::tags,
                         .outputs = kTags,
                         .skipped_records = 0,
                         .feature_names = {},
                         .output_names = {}};
  return memory_dataset(info, {train, batch_rows(rows)}, {test, batch_rows(rows)});
}

V random_vector(std::uint32_t step, float scale, float shift) {
  V out(kSize);
  fill_normal({.seed = 9, .purpose = Purpose::test, .step = step}, out.span());
  return scale * out + shift;
}

V positive(const V& x) { return sqrt(x * x) + 0.5f; }

class SparseChains : public testing::Test {
 protected:
  SparseChains() {
    settings_.client = {.epochs = 4, .batch = 5, .remainder = Remainder::keep};
    settings_.client.optimizer = {.lr = 0.3, .momentum = 0.9};
    settings_.client.weight_decay = 0.03;
  }

  Visit visit(bool isotropic) const {
    const V eta = random_vector(2, 2.0f, 0.5f);
    if (isotropic) return round_.visit(client_, Message(eta, 3.0f));
    return round_.visit(client_, Message(eta, positive(random_vector(3, 2.0f, 0.0f))));
  }

  static void expect_near(const V& found, const V& expected, const char* what) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(double(expected[i])))) << what << i;
    }
  }

  // Runs both chains to their end; asks for everything after every epoch, or only at the end.
  void expect_same(const Visit& visit, bool ask_always) {
    const ChainInput input{*data_, 0, visit, settings_};
    const auto dense = make_dense_chain(*model_, input);
    const auto sparse = make_sparse_chain(*model_, input);
    const int epochs = settings_.pooled ? 1 : settings_.client.epochs;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (Chain* chain : {dense.get(), sparse.get()}) {
        chain->run_epoch(epoch);
        chain->accumulate_moments();
      }
      if (!ask_always && epoch + 1 < epochs) continue;
      expect_near(sparse->iterate(), dense->iterate(), "iterate ");
      expect_near(sparse->mean(), dense->mean(), "mean ");
      if (settings_.averages) {
        expect_near(sparse->epoch_average(), dense->epoch_average(), "average ");
      }
      if (settings_.keeps_variance && epoch > 0) {
        expect_near(sparse->variance(), dense->variance(), "variance ");
      }
      EXPECT_EQ(sparse->steps(), dense->steps());
      EXPECT_NEAR(sparse->loss_sum(), dense->loss_sum(), 1e-5 * double(dense->steps()));
    }
  }

  // The last 20 words occur nowhere.
  std::unique_ptr<Dataset> data_ = questions(kWords - 20);
  ClientInfo client_ = clients_of(data_->clients())[0];
  std::unique_ptr<SparseLinear> model_ =
      make_sparse_linear({.features = kWords, .outputs = kTags, .target = TargetKind::tags});
  TestRound round_{"fed_sep", {}, from_mean(random_vector(1, 1.0f, 0.0f), 20.0f)};
  ChainSettings settings_;
};

TEST_F(SparseChains, DoWhatDenseOnesDoWhateverIsKept) {
  for (const bool isotropic : {true, false}) {
    for (const bool averages : {true, false}) {
      for (const bool variance : {true, false}) {
        for (const bool ask_always : {true, false}) {
          for (const double momentum : {0.0, 0.9}) {
            SCOPED_TRACE(testing::Message()
                         << isotropic << averages << variance << ask_always << momentum);
            settings_.averages = averages;
            settings_.keeps_variance = variance;
            settings_.client.optimizer.momentum = momentum;
            expect_same(visit(isotropic), ask_always);
          }
        }
      }
    }
  }
}

TEST_F(SparseChains, PoolEpochsSumLossesAndDropRemaindersAsDenseOnesDo) {
  for (const bool isotropic : {true, false}) {
    settings_.pooled = true;
    expect_same(visit(isotropic), true);
    settings_.pooled = false;
    settings_.client.loss_times_batch = true;
    expect_same(visit(isotropic), true);
    settings_.client.remainder = Remainder::drop;
    expect_same(visit(isotropic), true);
    settings_.client.loss_times_batch = false;
  }
}

TEST_F(SparseChains, WithOneOutputAreNoSpecialCase) {
  const auto model =
      make_sparse_linear({.features = kSize - 1, .outputs = 1, .target = TargetKind::binary});
  Batch rows;
  rows.size = 2;
  rows.sparse = {.offsets = {0, 1, 3}, .columns = {4, 4, 9}, .values = {1.0f, 0.5f, 2.0f}};
  rows.labels = {0, 1};
  ClientRows owner;
  owner.add("one", 2);
  const DatasetInfo info{.name = "pair",
                         .features = {std::int64_t(kSize - 1)},
                         .sparse = true,
                         .target = TargetKind::binary,
                         .outputs = 1,
                         .skipped_records = 0,
                         .feature_names = {},
                         .output_names = {}};
  const auto data = memory_dataset(info, {owner, batch_rows(rows)}, {owner, batch_rows(rows)});
  const ClientInfo client = clients_of(data->clients())[0];
  settings_.client.batch = 1;
  for (const bool isotropic : {true, false}) {
    const Visit visit = round_.visit(client, this->visit(isotropic).cavity);
    const ChainInput input{*data, 0, visit, settings_};
    const auto dense = make_dense_chain(*model, input);
    const auto sparse = make_sparse_chain(*model, input);
    for (int epoch = 0; epoch < 3; ++epoch) {
      dense->run_epoch(epoch);
      sparse->run_epoch(epoch);
    }
    expect_near(sparse->iterate(), dense->iterate(), "iterate ");
  }
}

// More outputs than a stripe has columns, and of every kind that has several.
TEST_F(SparseChains, WithManyOutputsAreNoSpecialCase) {
  constexpr std::size_t kOutputs = 37, kFew = 12, kAll = (kFew + 1) * kOutputs;
  Stream stream({.seed = 6, .purpose = Purpose::test});
  Batch rows;
  rows.size = kExamples;
  for (std::size_t i = 0; i < kExamples; ++i) {
    for (const std::size_t word : sample_without_replacement(stream, kFew - 2, 2)) {
      rows.sparse.columns.push_back(std::uint32_t(word));
    }
    rows.sparse.offsets.push_back(std::uint32_t(rows.sparse.columns.size()));
    rows.labels.push_back(std::int32_t(stream.below(kOutputs)));
    for (const std::size_t tag : sample_without_replacement(stream, kOutputs, 3)) {
      rows.tags.columns.push_back(std::uint32_t(tag));
    }
    rows.tags.offsets.push_back(std::uint32_t(rows.tags.columns.size()));
  }
  V theta(kAll), eta(kAll), lambda(kAll);
  fill_normal({.seed = 7, .purpose = Purpose::test}, theta.span());
  fill_normal({.seed = 8, .purpose = Purpose::test}, eta.span());
  fill_normal({.seed = 9, .purpose = Purpose::test}, lambda.span());
  const TestRound round("fed_sep", {}, from_mean(theta, 20.0f));
  ClientRows owner;
  owner.add("one", kExamples);
  for (const TargetKind target : {TargetKind::tags, TargetKind::label}) {
    const auto model =
        make_sparse_linear({.features = kFew, .outputs = kOutputs, .target = target});
    Batch with_target = rows;
    if (target == TargetKind::tags) with_target.labels.clear();
    if (target == TargetKind::label) with_target.tags = {};
    const DatasetInfo info{.name = "wide",
                           .features = {std::int64_t(kFew)},
                           .sparse = true,
                           .target = target,
                           .outputs = kOutputs,
                           .skipped_records = 0,
                           .feature_names = {},
                           .output_names = {}};
    const auto data =
        memory_dataset(info, {owner, batch_rows(with_target)}, {owner, batch_rows(with_target)});
    const ClientInfo client = clients_of(data->clients())[0];
    for (const bool isotropic : {true, false}) {
      SCOPED_TRACE(testing::Message() << int(target) << isotropic);
      settings_.keeps_variance = true;
      settings_.client.loss_times_batch = true;
      const Visit visit =
          round.visit(client, isotropic ? Message(eta, 3.0f) : Message(eta, positive(lambda)));
      const ChainInput input{*data, 0, visit, settings_};
      const auto dense = make_dense_chain(*model, input);
      const auto sparse = make_sparse_chain(*model, input);
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (Chain* chain : {dense.get(), sparse.get()}) {
          chain->run_epoch(epoch);
          chain->accumulate_moments();
        }
        if (epoch == 1) expect_near(sparse->iterate(), dense->iterate(), "iterate ");
      }
      expect_near(sparse->mean(), dense->mean(), "mean ");
      expect_near(sparse->variance(), dense->variance(), "variance ");
      EXPECT_NEAR(sparse->loss_sum(), dense->loss_sum(), 1e-5 * double(dense->steps()));
      EXPECT_GT(sum(sparse->variance()), 0.1);
    }
  }
}

// Steps are put off until somebody asks; but for rounding, nothing depends on when that is.
TEST_F(SparseChains, MayBeAskedAtAnyTime) {
  for (const bool isotropic : {true, false}) {
    const Visit start = visit(isotropic);
    const ChainInput input{*data_, 0, start, settings_};
    const auto at_once = make_sparse_chain(*model_, input);
    const auto later = make_sparse_chain(*model_, input);
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (Chain* chain : {at_once.get(), later.get()}) {
        chain->run_epoch(epoch);
        if (chain == at_once.get()) chain->iterate();
      }
    }
    const double loss = later->loss_sum();
    EXPECT_NEAR(loss, at_once->loss_sum(), 1e-6 * loss);
    expect_near(later->iterate(), at_once->iterate(), "iterate ");
    EXPECT_EQ(later->steps(), at_once->steps());
  }
}

TEST_F(SparseChains, RefuseWordsThatAreNoFeatures) {
  const auto narrow =
      make_sparse_linear({.features = 20, .outputs = kTags, .target = TargetKind::tags});
  const Visit start = visit(true);
  const auto chain = make_sparse_chain(*narrow, {*data_, 0, start, settings_});
  EXPECT_THROW(chain->run_epoch(0), InputError);
}

TEST_F(SparseChains, LeaveRowsAloneThatNothingPulls) {
  settings_.client.weight_decay = 0;
  const Visit flat = round_.visit(client_, Message(V(kSize), 0.0f));
  const auto chain = make_sparse_chain(*model_, {*data_, 0, flat, settings_});
  chain->run_epoch(0);
  const V end = chain->iterate();
  for (std::size_t i = (kWords - 20) * kTags; i < kWords * kTags; ++i) {
    EXPECT_EQ(end[i], round_.task().mean[i]);
  }
  EXPECT_NE(end[kSize - 1], round_.task().mean[kSize - 1]);  // the bias
}

TEST_F(SparseChains, StartAtTheServersMean) {
  for (const bool isotropic : {true, false}) {
    const Visit start = visit(isotropic);
    const auto chain = make_sparse_chain(*model_, {*data_, 0, start, settings_});
    EXPECT_EQ(chain->iterate(), round_.task().mean);
    EXPECT_EQ(chain->mean(), round_.task().mean);
    EXPECT_EQ(chain->epoch_average(), round_.task().mean);
    EXPECT_THROW(chain->variance(), InputError);
  }
}

TEST_F(SparseChains, AreMadeForSparseModelsUnlessNoiseMovesAll) {
  settings_.client.epochs = 1;
  const Visit start = visit(true);
  const ChainInput input{*data_, 0, start, settings_};
  const auto chosen = make_chain(*model_, input);
  const auto sparse = make_sparse_chain(*model_, input);
  chosen->run_epoch(0);
  sparse->run_epoch(0);
  EXPECT_EQ(chosen->iterate(), sparse->iterate());
  settings_.langevin = true;
  const auto noisy = make_chain(*model_, input);
  const auto dense = make_dense_chain(*model_, input);
  noisy->run_epoch(0);
  dense->run_epoch(0);
  EXPECT_EQ(noisy->iterate(), dense->iterate());
}

// The sparse model for those who do not know that it is one.
class Disguised final : public Model {
 public:
  explicit Disguised(SparseLinear& model) : model_(model) {}
  const Layout& layout() const override { return model_.layout(); }
  std::size_t outputs() const override { return model_.outputs(); }
  Likelihood likelihood() const override { return model_.likelihood(); }
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    model_.initialise(seed, theta);
  }
  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    return model_.loss_gradient(theta, batch, mode, gradient);
  }
  void logits(std::span<const float> theta, const Batch& batch, const Mode& mode,
              std::span<float> out) override {
    model_.logits(theta, batch, mode, out);
  }
  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode& mode,
                             std::span<const float> tag_targets, std::span<float> sum) override {
    model_.add_squared_gradients(theta, batch, mode, tag_targets, sum);
  }

 private:
  SparseLinear& model_;
};

TEST_F(SparseChains, LeaveTheFisherInformationWhatItIs) {
  const Visit start = visit(true);
  Disguised disguised(*model_);
  const auto sparse = make_cpu_cohort(*model_, {{*data_, 0, start, settings_}});
  const auto dense = make_cpu_cohort(disguised, {{*data_, 0, start, settings_}});
  const std::vector<V> theta{random_vector(4, 1.0f, 0.0f)};
  for (int t = 0; t < sparse->fisher_batches(0, 2); ++t) {
    const V found = sparse->squared_gradients(theta, t, 2, 0)[0];
    expect_near(1e3f * found, 1e3f * dense->squared_gradients(theta, t, 2, 0)[0], "square ");
    EXPECT_GT(sum(found), 1e-3);
  }
}

TEST_F(SparseChains, GiveLaplaceAndNgviWhatDenseOnesGive) {
  settings_.client.epochs = 2;
  Disguised disguised(*model_);
  for (const char* name : {"laplace", "ngvi"}) {
    for (const bool isotropic : {true, false}) {
      for (const double clip_std : {0.0, 2.0, 0.01}) {  // the last makes zeros positive
        SCOPED_TRACE(testing::Message() << name << isotropic << clip_std);
        const Visit start = visit(isotropic);
        const InferenceSettings inference{.name = name,
                                          .scale = 30,
                                          .initial_scale = 0.2,
                                          .epochs = 3,
                                          .samples = 2,
                                          .decay = 0.8,
                                          .clip_std = clip_std};
        const auto tilted = [&](Model& model) {
          const auto cohort = make_cpu_cohort(model, {{*data_, 0, start, settings_}});
          return infer_cohort(*cohort, find_algorithm("fed_sep"), inference)[0].tilted;
        };
        const Message found = tilted(*model_), expected = tilted(disguised);
        expect_near(found.lambda_vector(), expected.lambda_vector(), "lambda ");
        expect_near(found.eta(), expected.eta(), "eta ");
        const V own = found.lambda_vector() - start.cavity.lambda_full();
        EXPECT_GT(sum(own), 1.0);
      }
    }
  }
}

}  // namespace
}  // namespace fedep
