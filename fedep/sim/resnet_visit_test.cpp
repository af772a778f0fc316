// One client's visit with ResNet-18 on images of CIFAR-100's size, stateful EP as the paper runs
// it, step by step against the SG-MCMC algebra (Guo+23 Alg. 2 and 4, and what the reference adds)
// in plain double over all 11,218,212 coordinates, those that never get a gradient included.

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/model/registry.h"
#include "fedep/round/test_visit.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/test_images.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;
using Doubles = std::vector<double>;

constexpr std::size_t kExamples = 9;  // two batches of four, one left over
constexpr double kLr = 0.01, kMomentum = 0.9, kDecay = 1e-4, kAlpha = 0.05;
constexpr double kShrinkage = 1e-4, kDamping = 1.0 / 20;

V noise(std::size_t size, std::uint32_t step) {
  V x(size);
  fill_normal({.seed = 8, .step = step}, x.span());
  return x;
}

// base (1 + 0.1 u), u uniform.
V around(float base, std::size_t size, std::uint32_t step) {
  V x(size);
  fill_uniform({.seed = 8, .step = step}, x.span());
  return 0.1f * base * x + base;
}

// ‖found - expected‖ / ‖expected‖, where expected(j) is coordinate j.
template <class F>
double distance(std::span<const float> found, const F& expected) {
  double gap = 0, norm = 0;
  for (std::size_t j = 0; j < found.size(); ++j) {
    const double x = expected(j);
    gap += (double(found[j]) - x) * (double(found[j]) - x);
    norm += x * x;
  }
  return std::sqrt(gap / norm);
}

template <class F>
double norm_of(std::size_t size, const F& x) {
  double sum = 0;
  for (std::size_t j = 0; j < size; ++j) sum += x(j) * x(j);
  return std::sqrt(sum);
}

class ResnetVisit : public testing::Test {
 protected:
  ResnetVisit() {
    recipe_.client = {.epochs = 3, .batch = 4, .remainder = Remainder::drop};
    recipe_.client.optimizer = {.lr = kLr, .momentum = kMomentum};
    recipe_.client.weight_decay = kDecay;
    model_->initialise(1, mean_.span());
    mean_ = mean_ +
            0.02f * noise(size_, 1);  // logits start at zero, where nothing below has a gradient
  }

  // Iterates at the ends of epochs. Gradients are the model's, taken afresh at every step.
  std::vector<Doubles> replay(const Visit& visit) {
    const Message& cavity = visit.cavity;
    const V lambda = cavity.lambda_full();
    Doubles theta(visit.round.mean.begin(), visit.round.mean.end()), m(size_);
    std::vector<Doubles> ends;
    std::vector<float> rounded(size_), gradient(size_);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      const Minibatches batches(visit_address(visit, Purpose::shuffle, epoch), kExamples, 1, 4,
                                Remainder::drop);
      for (std::size_t i = 0; i < batches.size(); ++i) {
        Batch batch;
        data_->train_batch(0, batches[i], nullptr, batch);
        for (std::size_t j = 0; j < size_; ++j) rounded[j] = float(theta[j]);
        std::fill(gradient.begin(), gradient.end(), 0.0f);
        model_->loss_gradient(rounded, batch, {}, gradient);
        for (std::size_t j = 0; j < size_; ++j) {
          const double lambda_p = double(lambda[j]) + kDecay * kExamples;
          m[j] = kMomentum * m[j] + double(gradient[j]) +
                 (lambda_p * theta[j] - double(cavity.eta()[j])) / kExamples;
          theta[j] -= kLr * m[j];
        }
      }
      ends.push_back(theta);
    }
    return ends;
  }

  std::unique_ptr<Dataset> data_ = tiny_images({24, 24, 3}, 100, {kExamples});
  ClientInfo client_ = clients_of(data_->clients())[0];
  ModelSettings model_settings_{.name = "resnet18", .norm = NormKind::per_position};
  std::unique_ptr<Model> model_ = make_model(model_settings_, data_->info());
  std::size_t size_ = model_->size();
  V mean_{V(size_)};
  Recipe recipe_;
};

TEST_F(ResnetVisit, AgreesWithAlgebraDoneByHand) {
  ASSERT_EQ(size_, 11218212u);
  InferenceSettings inference{.name = "sample_moments", .alpha = kAlpha, .shrinkage = kShrinkage};
  inference.clip_std = 2;
  inference.rescale = true;
  TestRound round("fed_ep", inference, from_mean(mean_, around(200, size_, 2)));
  round.phase.clip = 30;
  round.phase.factor_optimizer = {.lr = 0.5, .momentum = 0.9};
  round.task().damping = kDamping;

  // A client that was here before: factor and momentum of its own.
  SiteState before{.factor = from_mean(mean_ + 0.01f * noise(size_, 3), around(5, size_, 4)),
                   .optimizer = {}};
  before.optimizer = initial_state(round.phase.factor_optimizer, before.factor);
  before.optimizer.slots[0] = Message(0.01f * noise(size_, 5), 0.01f * noise(size_, 6));
  const auto sites = make_memory_store();
  sites->propose(client_.key, 6, before);
  sites->settle(6, std::vector{client_.key});

  const Message& global = round.task().global;
  const PreparedVisit prepared = prepare_visit(round.task(), {}, client_, sites.get());
  ASSERT_EQ(prepared.cavity, quotient(global, before.factor));

  // The chain.
  const Visit visit = round.visit(client_, prepared.cavity);
  const std::vector<Doubles> ends = replay(visit);
  ChainSettings chain_settings;
  chain_settings.client = recipe_.client;
  const auto chain = make_chain(*model_, {*data_, 0, visit, chain_settings});
  for (int epoch = 0; epoch < 3; ++epoch) {
    chain->run_epoch(epoch);
    chain->accumulate_moments();
    const V moved = chain->iterate() - mean_;
    const auto expected = [&](std::size_t j) {
      return ends[std::size_t(epoch)][j] - double(mean_[j]);
    };
    EXPECT_GT(norm_of(size_, expected), 0.1);
    EXPECT_LT(distance(moved.span(), expected), 1e-4) << "epoch " << epoch;
  }
  EXPECT_EQ(chain->steps(), 6u);

  // Its moments, and the tilted precision: shrunk, clipped, rescaled.
  Doubles mean(size_), lambda(size_);
  double sum = 0, squares = 0, identity = 0;
  const V cavity_lambda = prepared.cavity.lambda_full();
  for (std::size_t j = 0; j < size_; ++j) {
    mean[j] = (ends[0][j] + ends[1][j] + ends[2][j]) / 3;
    double variance = 0;
    for (const Doubles& end : ends) variance += std::pow(end[j] - mean[j], 2) / 2;
    lambda[j] = 1 / (kShrinkage + (1 - kShrinkage) * variance);
    sum += lambda[j];
    identity += std::pow(double(cavity_lambda[j]) + kAlpha * kExamples, 2);
  }
  EXPECT_LT(distance(chain->mean().span(), [&](std::size_t j) { return mean[j]; }), 1e-6);
  const double average = sum / double(size_);
  for (const double x : lambda) squares += std::pow(x - average, 2);
  const double spread = std::sqrt(squares / double(size_));
  for (double& x : lambda) x = std::min(std::max(x, average - 2 * spread), average + 2 * spread);
  const double ratio =
      std::sqrt(identity) / norm_of(size_, [&](std::size_t j) { return lambda[j]; });
  for (double& x : lambda) x *= ratio;

  // Delta, clipped and damped, and what it does to the client's own factor.
  const auto delta_eta = [&](std::size_t j) {
    return lambda[j] * mean[j] - double(global.eta()[j]);
  };
  const auto delta_lambda = [&](std::size_t j) {
    return lambda[j] - double(global.lambda_vector()[j]);
  };
  const double norm = std::hypot(norm_of(size_, delta_eta), norm_of(size_, delta_lambda));
  ASSERT_GT(norm, 30);
  const double scale = 30 / norm * kDamping;

  const Population population({client_});
  const auto learning =
      make_local_learning(*data_, population, recipe_, make_model(model_settings_, data_->info()));
  const Report report = play_visit(round.task(), {}, client_, sites.get(), *learning);
  ASSERT_EQ(report.outcome, Outcome::delta);
  EXPECT_EQ(report.numbers.steps, 6u);
  EXPECT_TRUE(report.numbers.clipped);
  EXPECT_NEAR(report.numbers.delta_norm, norm, 1e-4 * norm);
  const Message sent = from_grid(round.task().grid, report.delta);
  const auto sent_eta = [&](std::size_t j) { return scale * delta_eta(j); };
  const auto sent_lambda = [&](std::size_t j) { return scale * delta_lambda(j); };
  EXPECT_LT(distance(sent.eta().span(), sent_eta), 1e-4);
  EXPECT_LT(distance(sent.lambda_vector().span(), sent_lambda), 1e-4);

  const SiteState after = sites->proposed(client_.key).value();
  const Message step = quotient(after.factor, before.factor);
  const Message& momentum = before.optimizer.slots[0];
  EXPECT_LT(distance(step.eta().span(),
                     [&](std::size_t j) {
                       return 0.5 * (sent_eta(j) + 0.9 * double(momentum.eta()[j]));
                     }),
            1e-4);
  EXPECT_LT(distance(step.lambda_vector().span(),
                     [&](std::size_t j) {
                       return 0.5 * (sent_lambda(j) + 0.9 * double(momentum.lambda_vector()[j]));
                     }),
            1e-4);
}

TEST_F(ResnetVisit, WithScaledIdentitySendsTheMovementOfItsMean) {
  // Isotropic, stateless: Λ_tilted = Λ, so Δη = Λ (m - μ) and ΔΛ = 0 but for rounding.
  InferenceSettings inference{.name = "scaled_identity", .alpha = 1};
  TestRound round("fed_sep", inference, from_mean(mean_, 128.0f));
  const ClientTask task{.client = 0, .weight = 1, .share = kExamples / 128.0};
  const PreparedVisit prepared = prepare_visit(round.task(), task, client_, nullptr);
  ASSERT_TRUE(prepared.cavity.isotropic());
  EXPECT_EQ(prepared.cavity.lambda_scalar(), 128.0f - kExamples);
  const std::vector<Doubles> ends = replay(round.visit(client_, prepared.cavity));
  const auto expected = [&](std::size_t j) {
    return 128 * ((ends[0][j] + ends[1][j] + ends[2][j]) / 3 - double(mean_[j]));
  };
  const Population population({client_});
  const auto learning =
      make_local_learning(*data_, population, recipe_, make_model(model_settings_, data_->info()));
  const Report report = play_visit(round.task(), task, client_, nullptr, *learning);
  const Message sent = from_grid(round.task().grid, report.delta);
  EXPECT_EQ(sent.lambda_scalar(), 0.0f);
  EXPECT_LT(distance(sent.eta().span(), expected), 1e-4);
}

}  // namespace
}  // namespace fedep
