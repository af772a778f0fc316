// Squared gradients of several minibatches or draws at once, from captured passes and with labels that
// the model draws, against one at a time. sim/gpu/test_cuda_agreement.h compares with the CPU.
#include "fedep/sim/gpu/cuda_fisher.h"

#include <string>

#include <gtest/gtest.h>

#include "fedep/inference/ngvi.h"
#include "fedep/model/registry.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/gpu/test_cuda_agreement.h"

namespace fedep {
namespace {

using V = DeviceVector;

// Room for more clients than the round has: a hundred rows then hold four minibatches of each.
constexpr std::size_t kRoom = 25;

// The chains of a round after one epoch, and what collects squared gradients at their ends.
class Bench {
 public:
  explicit Bench(const std::string& model)
      : recipe_(recipe_for(model, "fed_ep", "ngvi")),
        dataset_(data_for(model)),
        host_(make_model(recipe_.model, dataset_->info())),
        population_(make_population(dataset_->clients())),
        data_(upload_training_data(*dataset_, false)),
        coordinates_(*host_),
        model_(wide_model(kRoom)),
        settings_{.client = recipe_.client},
        chains_(parts()),
        fisher_(
            parts(), [this](std::size_t clients) { return wide_model(clients); }, nullptr) {
    for (std::size_t c = 0; c < population_.size(); ++c) {
      visits_.push_back({population_[c], c, DeviceMessage(V(host_->size()), 2.0f)});
    }
    HostVector<float> start(host_->size()), noise(host_->size());
    host_->initialise(1, start.span());
    fill_normal({.seed = 5}, noise.span());
    chains_.begin(round_, to_device(start + 0.05f * noise), false);
    chains_.run_epoch(0);
    fisher_.begin(round_);
  }

  std::vector<V> means() {
    std::vector<V> means;
    for (std::size_t c = 0; c < visits_.size(); ++c) means.push_back(chains_.mean(c));
    return means;
  }
  CudaChains& chains() { return chains_; }
  CudaFisher& fisher() { return fisher_; }
  const CohortRound& round() const { return round_; }

 private:
  std::unique_ptr<CohortModel> wide_model(std::size_t clients) const {
    return make_cohort_model(
        recipe_.model, dataset_->info(),
        {clients, std::size_t(recipe_.client.batch), ProductPrecision::float32});
  }
  CudaParts parts() const {
    return {*model_, *data_, coordinates_, kRoom, std::size_t(recipe_.client.batch)};
  }

  Recipe recipe_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Model> host_;
  Population population_;
  std::unique_ptr<DeviceData> data_;
  Coordinates coordinates_;
  std::unique_ptr<CohortModel> model_;
  ChainSettings settings_;
  std::vector<CohortVisit> visits_;
  CohortRound round_{3, 7, settings_, visits_};
  CudaChains chains_;
  CudaFisher fisher_;
};

// What detail::running_fisher_by_steps() asks for, one draw after another.
class OneByOne final : public Cohort<V> {
 public:
  explicit OneByOne(Bench& bench) : bench_(bench) {}

  std::size_t clients() const override { return bench_.round().visits.size(); }
  double examples(std::size_t row) const override {
    return double(bench_.round().visits[row].client.examples);
  }
  const Gaussian<V>& cavity(std::size_t row) const override {
    return bench_.round().visits[row].cavity;
  }
  double weight_decay() const override { return bench_.round().settings.client.weight_decay; }
  int epochs() const override { return 1; }
  void sgd_epoch(int) override {}
  V iterate(std::size_t row) const override { return bench_.chains().iterate(row); }
  V epoch_average(std::size_t row) const override { return iterate(row); }
  void accumulate_moments() override {}
  V mean(std::size_t row) const override { return bench_.chains().mean(row); }
  V variance(std::size_t row) const override { return bench_.chains().variance(row); }
  std::size_t steps(std::size_t row) const override { return bench_.chains().steps(row); }
  double loss_sum(std::size_t row) const override { return bench_.chains().loss_sum(row); }
  int fisher_batches(std::size_t row, int epochs) const override {
    return bench_.fisher().batches(row, epochs);
  }
  std::vector<V> squared_gradients(const std::vector<V>& theta, int t, int epochs,
                                   int draw) override {
    return bench_.fisher().squared_gradients(theta, t, epochs, draw, bench_.chains());
  }
  V noise(std::size_t row, int t, int draw) const override {
    return bench_.fisher().noise(row, t, draw);
  }

 private:
  Bench& bench_;
};

void expect_same(const std::vector<V>& found, const std::vector<V>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t c = 0; c < found.size(); ++c) {
    EXPECT_LT(distance(to_host(found[c]).span(), to_host(expected[c]).span()), tolerance) << c;
  }
}

class CudaFisherTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CudaFisherTest, ManyMinibatchesAtOnceAreTheirSum) {
  Bench bench(GetParam());
  const int epochs = 8;  // up to 24 minibatches: several passes, the last one half empty
  const std::vector<V> means = bench.means();
  std::vector<V> expected;
  int batches = 0;
  for (std::size_t c = 0; c < means.size(); ++c) {
    batches = std::max(batches, bench.fisher().batches(c, epochs));
  }
  for (int t = 0; t < batches; ++t) {
    const std::vector<V> squares =
        bench.fisher().squared_gradients(means, t, epochs, 0, bench.chains());
    for (std::size_t c = 0; c < means.size(); ++c) {
      if (t == 0) {
        expected.push_back(squares[c]);
      } else {
        expected[c] = expected[c] + squares[c];
      }
    }
  }
  const std::vector<V> once = bench.fisher().fisher_sum(epochs, bench.chains());
  expect_same(once, expected, 1e-5);
  expect_same(bench.fisher().fisher_sum(epochs, bench.chains()), once, 1e-12);  // the same again
}

TEST_P(CudaFisherTest, ManyDrawsAtOnceAreDrawnOneByOne) {
  Bench bench(GetParam());
  InferenceSettings settings = recipe_for(GetParam(), "fed_ep", "ngvi").phases[0].inference.value();
  settings.epochs = 3;
  settings.samples = 6;  // two passes of three
  OneByOne cohort(bench);
  const std::vector<V> expected =
      detail::running_fisher_by_steps<V>(cohort, bench.means(), settings);
  expect_same(bench.fisher().running_fisher(settings, bench.chains()), expected, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaFisherTest, testing::Values("cnn", "resnet_small"));

}  // namespace
}  // namespace fedep
