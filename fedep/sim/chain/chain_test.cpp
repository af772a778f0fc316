// One client's chain against the recursion written out in double, and the settings that change it.

#include "fedep/sim/chain/chain.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "fedep/data/made_up/regression.h"
#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;
using Doubles = std::vector<double>;

constexpr std::size_t kFeatures = 4;
constexpr std::size_t kSize = kFeatures + 1;

class Chains : public testing::Test {
 protected:
  Chains() {
    settings_.client = {.epochs = 3, .batch = 6, .remainder = Remainder::drop};
    settings_.client.optimizer = {.lr = 0.05, .momentum = 0.9};
    settings_.client.weight_decay = 0.03;
  }

  std::unique_ptr<Chain> chain() { return make_chain(*model_, {*data_, 0, visit_, settings_}); }

  // What the chain is to do, in double, by the batches that it would draw: iterates after every
  // step, epoch by epoch.
  std::vector<std::vector<Doubles>> replay() const {
    const std::size_t n = visit_.client.examples;
    const bool pooled = settings_.pooled;
    const std::size_t epochs = std::size_t(settings_.client.epochs);
    const double lr = settings_.client.optimizer.lr, mu = settings_.client.optimizer.momentum;
    Doubles theta(visit_.round.mean.begin(), visit_.round.mean.end()), m(kSize);
    std::vector<std::vector<Doubles>> iterates;
    std::size_t step = 0;
    const double steps = double(n * (pooled ? epochs : 1) / std::size_t(settings_.client.batch) *
                                (pooled ? 1 : epochs));
    for (std::size_t epoch = 0; epoch < (pooled ? 1 : epochs); ++epoch) {
      const Minibatches batches(visit_address(visit_, Purpose::shuffle, epoch), n,
                                pooled ? epochs : 1, std::size_t(settings_.client.batch),
                                settings_.client.remainder);
      iterates.emplace_back();
      for (std::size_t i = 0; i < batches.size(); ++i) {
        Batch batch;
        data_->train_batch(0, batches[i], nullptr, batch);
        Doubles gradient(kSize);
        for (std::size_t row = 0; row < batch.size; ++row) {
          const float* x = batch.dense.data() + row * kFeatures;
          double error = theta[kFeatures] - double(batch.reals[row]);
          for (std::size_t j = 0; j < kFeatures; ++j) error += theta[j] * double(x[j]);
          const double scale = settings_.client.loss_times_batch ? 1 : 1 / double(batch.size);
          for (std::size_t j = 0; j < kFeatures; ++j) gradient[j] += scale * error * double(x[j]);
          gradient[kFeatures] += scale * error;
        }
        ++step;
        const double part = settings_.visit_rate ? 1 - 0.9 * double(step) / steps : 1;
        for (std::size_t j = 0; j < kSize; ++j) {
          const double lambda =
              double(visit_.cavity.lambda_full()[j]) + settings_.client.weight_decay * double(n);
          const double prior = (lambda * theta[j] - double(visit_.cavity.eta()[j])) / double(n);
          m[j] = mu * m[j] + gradient[j] + prior;
          theta[j] -= lr * settings_.rate * part * m[j];
        }
        iterates.back().push_back(theta);
      }
    }
    return iterates;
  }

  static void expect_near(const V& found, const Doubles& expected) {
    for (std::size_t j = 0; j < kSize; ++j) EXPECT_NEAR(double(found[j]), expected[j], 3e-6) << j;
  }

  const DataSettings data_settings_{
      .name = "regression", .clients = 1, .dimension = kFeatures, .examples = 45};
  std::unique_ptr<Dataset> data_ = open_regression(data_settings_, 2);
  std::vector<ClientInfo> clients_ = clients_of(data_->clients());
  std::unique_ptr<Model> model_ =
      make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::real});
  TestRound round_{"fed_sep", {}, from_mean(V{0.5f, -0.5f, 1, 2, -1}, 20.0f)};
  Visit visit_ = round_.visit(clients_[0], Message(V{2, -1, 0.5f, 1, 3}, V{4, 6, 5, 8, 3}));
  ChainSettings settings_;
};

TEST_F(Chains, StartAtTheServersMean) {
  const auto made = chain();
  EXPECT_EQ(made->iterate(), round_.task().mean);
  EXPECT_EQ(made->mean(), round_.task().mean);
  EXPECT_EQ(made->steps(), 0u);
}

TEST_F(Chains, FollowTheRecursionAndCarryTheirMomentumFromEpochToEpoch) {
  const auto expected = replay();
  const auto made = chain();
  std::size_t steps = 0;
  for (std::size_t epoch = 0; epoch < expected.size(); ++epoch) {
    made->run_epoch(int(epoch));
    expect_near(made->iterate(), expected[epoch].back());
    steps += clients_[0].examples / 6;
    EXPECT_EQ(made->steps(), steps);
  }
}

TEST_F(Chains, FollowTheirRatesSchedule) {
  settings_.rate = 0.5;
  settings_.visit_rate = VisitSchedule{.kind = ScheduleKind::linear, .from = 1, .to = 0.1};
  settings_.scheduled = true;
  for (const bool pooled : {false, true}) {
    settings_.pooled = pooled;
    const auto expected = replay();
    const auto made = chain();
    std::size_t steps = 0;
    for (std::size_t epoch = 0; epoch < expected.size(); ++epoch) {
      made->run_epoch(int(epoch));
      steps += expected[epoch].size();
      expect_near(made->iterate(), expected[epoch].back());
    }
    EXPECT_EQ(steps, steps_of_visit(settings_.client, pooled, clients_[0].examples));
  }
}

TEST_F(Chains, HaveTodaysBitsWithAConstantSchedule) {
  const auto plain = chain();
  for (int epoch = 0; epoch < 3; ++epoch) plain->run_epoch(epoch);
  const V expected = plain->iterate();
  settings_.visit_rate = VisitSchedule{.kind = ScheduleKind::constant};
  settings_.scheduled = true;
  const auto made = chain();
  for (int epoch = 0; epoch < 3; ++epoch) made->run_epoch(epoch);
  EXPECT_EQ(made->iterate(), expected);
}

TEST_F(Chains, TakeAnIsotropicCavityForTheDiagonalThatItIs) {
  visit_.cavity = Message(visit_.cavity.eta(), 5.0f);
  const auto isotropic = chain();
  isotropic->run_epoch(0);
  expect_near(isotropic->iterate(), replay()[0].back());
  visit_.cavity = to_diagonal(visit_.cavity);
  const auto diagonal = chain();
  diagonal->run_epoch(0);
  EXPECT_EQ(diagonal->iterate(), isotropic->iterate());
}

TEST_F(Chains, SumABatchsLossesIfToldTo) {
  settings_.client.loss_times_batch = true;
  settings_.client.optimizer.lr = 0.005;
  settings_.client.remainder = Remainder::keep;  // a short batch counts for less
  const auto made = chain();
  made->run_epoch(0);
  expect_near(made->iterate(), replay()[0].back());
}

TEST_F(Chains, HaveTheMeanAndUnbiasedVarianceOfTheIteratesAtTheEndOfEpochs) {
  settings_.keeps_variance = true;
  const auto expected = replay();
  const auto made = chain();
  for (int epoch = 0; epoch < 3; ++epoch) {
    made->run_epoch(epoch);
    made->accumulate_moments();
  }
  Doubles mean(kSize), variance(kSize);
  for (std::size_t j = 0; j < kSize; ++j) {
    for (const auto& epoch : expected) mean[j] += epoch.back()[j] / 3;
    for (const auto& epoch : expected) variance[j] += std::pow(epoch.back()[j] - mean[j], 2) / 2;
  }
  expect_near(made->mean(), mean);
  expect_near(made->variance(), variance);
}

TEST_F(Chains, AveragedWithinEpochsCountEveryIterate) {
  settings_.averages = true;
  const auto expected = replay();
  const auto made = chain();
  Doubles mean(kSize);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    made->run_epoch(int(epoch));
    Doubles average(kSize);
    for (const Doubles& theta : expected[epoch]) {
      for (std::size_t j = 0; j < kSize; ++j) {
        average[j] += theta[j] / double(expected[epoch].size());
      }
    }
    expect_near(made->epoch_average(), average);
    expect_near(made->iterate(),
                expected[epoch].back());  // which goes on from the last, not the average
    made->accumulate_moments();
    for (std::size_t j = 0; j < kSize; ++j) mean[j] += average[j] / 3;
  }
  expect_near(made->mean(), mean);
}

TEST_F(Chains, PooledMakeAsManyStepsAsAllEpochsExamplesFill) {
  const std::size_t n = clients_[0].examples;
  const std::size_t batch = n / 2 + 1;  // of which an epoch alone has one
  settings_.client.batch = int(batch);
  settings_.pooled = true;
  const auto made = chain();
  made->run_epoch(0);
  EXPECT_EQ(made->steps(), 3 * n / batch);
  EXPECT_GT(made->steps(), 3 * (n / batch));
  expect_near(made->iterate(), replay()[0].back());
}

TEST_F(Chains, ShorterThanABatchDoNotMoveUnlessTheRemainderIsKept) {
  settings_.client.batch = 1000;
  const auto dropped = chain();
  dropped->run_epoch(0);
  dropped->accumulate_moments();
  EXPECT_EQ(dropped->steps(), 0u);
  EXPECT_EQ(dropped->mean(), round_.task().mean);
  settings_.client.remainder = Remainder::keep;
  const auto kept = chain();
  kept->run_epoch(0);
  EXPECT_EQ(kept->steps(), 1u);
  expect_near(kept->iterate(), replay()[0].back());
}

TEST_F(Chains, WithLangevinNoiseAddItOnceToTheMomentum) {
  settings_.client.epochs = 1;
  settings_.client.batch = int(clients_[0].examples);
  const Doubles plain = replay()[0].back();
  settings_.langevin = true;
  const auto made = chain();
  made->run_epoch(0);
  V noise(kSize);
  fill_normal(visit_address(visit_, Purpose::langevin, 0), noise.span());
  const double sigma = std::sqrt(2 * (1 - 0.9) / (0.05 * double(clients_[0].examples)));
  Doubles expected = plain;
  for (std::size_t j = 0; j < kSize; ++j) expected[j] -= 0.05 * sigma * double(noise[j]);
  expect_near(made->iterate(), expected);
}

// The model of these chains without features 1 and 3: their weights are dead, nothing depends on
// them.
class HalfDead final : public Model {
 public:
  explicit HalfDead(Model& model) : model_(model) {}
  const Layout& layout() const override { return model_.layout(); }
  std::size_t outputs() const override { return 1; }
  Likelihood likelihood() const override { return TargetKind::real; }
  void initialise(std::uint64_t, std::span<float>) const override {}
  std::vector<Range> live() const override { return {{0, 1}, {2, 3}, {4, 5}}; }
  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    V fresh(kSize), seen(std::vector<float>(theta.begin(), theta.end()));
    seen[1] = seen[3] = 0;
    const double loss = model_.loss_gradient(seen.span(), batch, {}, fresh.span());
    for (const std::size_t j : {0u, 2u, 4u}) gradient[j] = mode.keep * gradient[j] + fresh[j];
    return loss;
  }
  void logits(std::span<const float>, const Batch&, const Mode&, std::span<float>) override {}
  void add_squared_gradients(std::span<const float>, const Batch&, const Mode&,
                             std::span<const float>, std::span<float>) override {}

 private:
  Model& model_;
};

// The same without saying so: all coordinates are stepped, those two with gradient zero.
class ZeroGradient final : public Model {
 public:
  explicit ZeroGradient(Model& model) : half_(model) {}
  const Layout& layout() const override { return half_.layout(); }
  std::size_t outputs() const override { return 1; }
  Likelihood likelihood() const override { return TargetKind::real; }
  void initialise(std::uint64_t, std::span<float>) const override {}
  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    for (const std::size_t j : {1u, 3u}) gradient[j] *= mode.keep;
    return half_.loss_gradient(theta, batch, mode, gradient);
  }
  void logits(std::span<const float>, const Batch&, const Mode&, std::span<float>) override {}
  void add_squared_gradients(std::span<const float>, const Batch&, const Mode&,
                             std::span<const float>, std::span<float>) override {}

 private:
  HalfDead half_;
};

TEST_F(Chains, MoveDeadCoordinatesAsIfTheyWereStepped) {
  HalfDead dead(*model_);
  ZeroGradient zero(*model_);
  for (const bool averages : {false, true}) {
    for (const bool langevin : {false, true}) {
      for (const bool times_batch : {false, true}) {
        for (const double momentum : {0.0, 0.9}) {
          settings_.averages = averages;
          settings_.langevin = langevin;
          settings_.client.loss_times_batch = times_batch;
          settings_.client.optimizer = {.lr = 0.005, .momentum = momentum};
          const auto a = make_chain(dead, {*data_, 0, visit_, settings_});
          const auto b = make_chain(zero, {*data_, 0, visit_, settings_});
          for (int epoch = 0; epoch < 3; ++epoch) {
            a->run_epoch(epoch);
            b->run_epoch(epoch);
            EXPECT_EQ(a->iterate(), b->iterate())
                << averages << langevin << times_batch << momentum;
            if (averages) {
              EXPECT_EQ(a->epoch_average(), b->epoch_average());
            }
          }
        }
      }
    }
  }
}

// Another client with the very same examples, cavity and start.
TEST_F(Chains, OfTwoClientsHaveBatchesAndNoiseOfTheirOwn) {
  ClientInfo twin = clients_[0];
  twin.id = "twin";
  twin.key = client_key(twin.id);
  const Visit other = round_.visit(twin, visit_.cavity);
  const auto last_of = [&](const Visit& visit) {
    const auto made = make_chain(*model_, {*data_, 0, visit, settings_});
    made->run_epoch(0);
    return made->iterate();
  };
  EXPECT_EQ(last_of(visit_), last_of(visit_));
  EXPECT_NE(last_of(visit_), last_of(other));  // shuffled in another order
  settings_.client.batch = int(twin.examples);
  settings_.langevin = true;
  const V difference = last_of(visit_) - last_of(other);
  for (const float x : difference) EXPECT_GT(std::fabs(x), 1e-4f);  // one batch, other noise
}

TEST(VisitAddress, TellsSeedPurposeRoundClientAndStep) {
  TestRound round("fed_sep", {}, from_mean(V{1}, 1.0f));
  const ClientInfo client{"ward-3", client_key("ward-3"), 10};
  const Message cavity(V{0}, 1.0f);
  const Visit visit = round.visit(client, cavity);
  EXPECT_EQ(visit_address(visit, Purpose::dropout, 9), (Address{.seed = round.task().seed,
                                                                .purpose = Purpose::dropout,
                                                                .round = 7,
                                                                .client = client.key,
                                                                .step = 9}));
}

TEST_F(Chains, OfAnotherOptimizerThanSgdAreRefused) {
  EXPECT_NO_THROW(check_chain(settings_));
  settings_.client.optimizer.name = "adam";
  EXPECT_THROW(check_chain(settings_), InputError);
}

TEST(MakesSteps, AsMinibatchesDo) {
  for (const Remainder remainder : {Remainder::keep, Remainder::drop}) {
    for (const std::size_t examples : {0, 1, 4, 5, 6, 12}) {
      const ClientSettings client{.epochs = 3, .batch = 6, .remainder = remainder};
      for (const bool pooled : {false, true}) {
        const Minibatches batches({}, examples, pooled ? 3 : 1, 6, remainder);
        EXPECT_EQ(makes_steps(client, pooled, examples), batches.size() > 0) << examples << pooled;
      }
    }
  }
}

TEST(Minibatches, HaveEveryExampleAsOftenAsThereAreCopies) {
  for (const std::size_t copies : {1u, 3u}) {
    const Minibatches batches({.seed = 1}, 10, copies, 4, Remainder::keep);
    EXPECT_EQ(batches.size(), (10 * copies + 3) / 4);
    std::map<std::uint32_t, std::size_t> seen;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      for (const std::uint32_t example : batches[i]) ++seen[example];
    }
    ASSERT_EQ(seen.size(), 10u);
    for (const auto& [example, times] : seen) EXPECT_EQ(times, copies) << example;
  }
}

TEST(Minibatches, DropOrKeepTheRemainder) {
  EXPECT_EQ(Minibatches({.seed = 1}, 10, 1, 4, Remainder::drop).size(), 2u);
  const Minibatches kept({.seed = 1}, 10, 1, 4, Remainder::keep);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2].size(), 2u);
  EXPECT_EQ(Minibatches({.seed = 1}, 8, 1, 4, Remainder::keep).size(), 2u);
  EXPECT_EQ(Minibatches({.seed = 1}, 3, 1, 4, Remainder::drop).size(), 0u);
  for (const Remainder remainder : {Remainder::drop, Remainder::keep}) {
    EXPECT_EQ(Minibatches({.seed = 1}, 0, 5, 4, remainder).size(), 0u);
  }
}

}  // namespace
}  // namespace fedep
