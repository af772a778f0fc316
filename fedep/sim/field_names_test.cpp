// Names for what things are, with clients that run SGD on data: which algorithms make the same rounds
// as which others. sim/field_laws_test.cpp has the same for answers without error.

#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/data/made_up/regression.h"
#include "fedep/data/test_batches.h"
#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/test_images.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 5, kExamples = 12;
constexpr double kAlpha = 0.05;

Recipe recipe_of(PhaseSettings phase, int epochs) {
  Recipe recipe;
  recipe.data.name = "synthetic";
  recipe.client = {.epochs = epochs, .batch = 4};
  recipe.client.optimizer = {.lr = 0.05, .momentum = 0.9};
  recipe.server.clients_per_round = 3;
  phase.rounds = 10;
  recipe.phases.push_back(std::move(phase));
  return recipe;
}

// Clients of one size.
class Rounds {
 public:
  explicit Rounds(Recipe recipe, std::size_t examples = kExamples)
      : recipe_(std::move(recipe)),
        phase_(plan_phases(recipe_,
                           [](std::string_view name) { return find_method(name).family; })[0]),
        data_(tiny_images({4, 4, 1}, 3, std::vector<std::size_t>(kClients, examples))) {
    HostVector<float> initial(make_model(recipe_.model, data_->info())->size(), 0.01f);
    state_ = begin_phase(initial_server_state(recipe_.server, initial), phase_, 0, population_);
    learning_ =
        make_local_learning(*data_, population_, recipe_, make_model(recipe_.model, data_->info()));
    executor_ = make_serial(population_, *learning_, sites_.get());
  }
  HostVector<float> play() {
    play_round(state_, phase_, 7, population_, *executor_);
    return point_estimate(state_);
  }
  const Message& q() const { return state_.global; }
  HostVector<float> mean() const { return point_estimate(state_); }
  // A point estimate that is another.
  void go_on_from(const HostVector<float>& mean) { state_.global = from_mean(mean, 1.0f); }

 private:
  Recipe recipe_;
  Phase phase_;
  std::unique_ptr<Dataset> data_;
  Population population_ = make_population(data_->clients());
  std::unique_ptr<SiteStore> sites_ = make_memory_store();
  std::unique_ptr<LocalInference> learning_;
  std::unique_ptr<Executor> executor_;
  ServerState state_;
};

double apart(const HostVector<float>& a, const HostVector<float>& b) {
  const HostVector<float> gap = a - b;
  return std::sqrt(dot(gap, gap) / dot(b, b));
}

PhaseSettings fed_prox(double mu) {
  return {.algorithm = "fed_prox", .mu = mu, .weight = WeightRule::equal};
}
PhaseSettings fed_sep_i() {
  return {.algorithm = "fed_sep",
          .inference = InferenceSettings{.name = "scaled_identity", .alpha = kAlpha}};
}
constexpr double kMu = kAlpha * (double(kClients) - 1);

// A chain of one epoch has one sample, its last iterate: then FedSEP (I) and FedProx send the same.
TEST(FedProxOnData, IsFedSepWithScaledIdentityWhereChainsHaveOneEpoch) {
  Rounds prox(recipe_of(fed_prox(kMu), 1)), sep(recipe_of(fed_sep_i(), 1));
  for (int round = 0; round < 8; ++round) {
    EXPECT_LT(apart(prox.play(), sep.play()), 1e-5) << round;
    EXPECT_NEAR(sep.q().lambda_scalar(), kAlpha * kClients * kExamples, 1e-4);
  }
}

// Of several epochs FedSEP (I) answers with the average of what FedProx would answer with after 1, 2, …
// of them: one chain, read at every epoch's end. Clients have one example each, since FedProx shuffles those
// of all epochs together and its batches would be others.
TEST(FedProxOnData, IsFedSepWithScaledIdentityOnceItsAnswersAreAveragedOverTheChain) {
  constexpr int kEpochs = 6;
  const auto rounds_of = [](const PhaseSettings& phase, int epochs) {
    Recipe recipe = recipe_of(phase, epochs);
    recipe.client.batch = 1;
    return recipe;
  };
  Rounds sep(rounds_of(fed_sep_i(), kEpochs), 1);
  std::deque<Rounds> proxes;
  for (int e = 1; e <= kEpochs; ++e) proxes.emplace_back(rounds_of(fed_prox(kMu), e), 1);
  for (int round = 0; round < 8; ++round) {
    HostVector<float> average(sep.q().size());
    for (Rounds& prox : proxes) average = average + 1.0f / kEpochs * prox.play();
    EXPECT_GT(apart(proxes.back().mean(), average), 0.01) << "the chain's end is as good";
    const HostVector<float> mean = sep.play();
    EXPECT_LT(apart(mean, average), 1e-5) << round;
    for (Rounds& prox : proxes) prox.go_on_from(mean);
  }
}

TEST(FedProxOnData, WithoutPullIsFedAvgToTheBit) {
  PhaseSettings fed_avg{.algorithm = "fed_avg", .weight = WeightRule::equal};
  Rounds prox(recipe_of(fed_prox(0), 2)), avg(recipe_of(fed_avg, 2));
  for (int round = 0; round < 4; ++round) EXPECT_EQ(prox.play(), avg.play());
}

TEST(FedProxOnData, PullsChainsTowardsTheServersMean) {
  Rounds weak(recipe_of(fed_prox(0.01), 4)), strong(recipe_of(fed_prox(2), 4));
  const HostVector<float> start = HostVector<float>(51, 0.01f);
  ASSERT_EQ(weak.q().size(), start.size());
  EXPECT_LT(apart(strong.play(), start), 0.5 * apart(weak.play(), start));
}

// FedLap-Cov is FedEP (L) with a prior and without an optimizer: the same bits.
TEST(FedLapCovOnData, IsFedEpWithLaplaceToTheBit) {
  const InferenceSettings laplace{.name = "laplace", .epochs = 2};
  const PhaseSettings cov{.algorithm = "fed_lap_cov", .inference = laplace};
  const PhaseSettings ep{.algorithm = "fed_ep", .inference = laplace};
  Recipe a = recipe_of(cov, 2), b = recipe_of(ep, 2);
  a.server.prior = b.server.prior = PriorSettings{.mean = 0, .precision = 3};
  Rounds one(a), other(b);
  for (int round = 0; round < 4; ++round) {
    one.play();
    other.play();
    EXPECT_EQ(one.q(), other.q());
  }
}

// Linear regression, four clients: all that infer by IVON, against the pooled posterior of all rows in
// closed form. Precisions are the diagonal's, which is where variational posteriors with one precision
// for each weight have their minimum; draws and batches leave some hundredths.
class RegressionRounds : public testing::Test {
 protected:
  static constexpr double kPrior = 2;

  RegressionRounds() {
    recipe_.data = {.name = "regression", .clients = 4, .dimension = 3, .examples = 50};
    recipe_.client = {.epochs = 60, .batch = 1000};
    recipe_.client.optimizer = {.lr = 0.1, .momentum = 0.9};
    recipe_.server.clients_per_round = 4;
    recipe_.server.prior = PriorSettings{.mean = 0, .precision = kPrior};
    data_ = open_regression(recipe_.data, 3);
    precision_ = kPrior * Eigen::MatrixXd::Identity(4, 4);
    eta_ = Eigen::VectorXd::Zero(4);
    for (std::size_t k = 0; k < 4; ++k) {
      const auto [h, b] = rows_of(k);
      precision_ += h;
      eta_ += b;
    }
  }

  // Curvature and linear term of client k's squared errors.
  std::pair<Eigen::MatrixXd, Eigen::VectorXd> rows_of(std::size_t k) const {
    Eigen::MatrixXd h = Eigen::MatrixXd::Zero(4, 4);
    Eigen::VectorXd b = Eigen::VectorXd::Zero(4);
    const Batch rows = training_batch(*data_, k);
    for (std::size_t i = 0; i < rows.size; ++i) {
      Eigen::VectorXd x = Eigen::VectorXd::Ones(4);
      for (std::size_t j = 0; j < 3; ++j) x[Eigen::Index(j)] = double(rows.dense[i * 3 + j]);
      h += x * x.transpose();
      b += double(rows.reals[i]) * x;
    }
    return {h, b};
  }

  // After so many rounds; the last half with steps that fall, so that draws' noise averages out.
  Message play(PhaseSettings settings, int rounds) {
    settings.rounds = rounds;
    settings.cooldown = CooldownSettings{.after = rounds / 2, .rounds = rounds / 4, .to = 0.1};
    InferenceSettings ivon{.name = "ivon", .initial_scale = 1};
    ivon.samples = 4;
    ivon.decay = 0.98;
    settings.inference = ivon;
    recipe_.phases = {settings};
    const Phase phase =
        plan_phases(recipe_, [](std::string_view name) { return find_method(name).family; })[0];
    const Population population = make_population(data_->clients());
    const auto model = [&] { return make_model(recipe_.model, data_->info()); };
    const auto learning = make_local_learning(*data_, population, recipe_, model());
    const auto sites = make_memory_store();
    const auto executor = make_serial(population, *learning, sites.get());
    ServerState state = begin_phase(initial_server_state(recipe_.server, HostVector<float>(4)),
                                    phase, 0, population);
    for (int round = 0; round < rounds; ++round) {
      play_round(state, phase, 3, population, *executor);
    }
    return state.global;
  }
  void expect_posterior(const Message& q, double temperature = 1) {
    const Eigen::MatrixXd all =
        precision_ / temperature + (1 - 1 / temperature) * kPrior * Eigen::MatrixXd::Identity(4, 4);
    expect_near(q, all, all.ldlt().solve(eta_ / temperature));
  }
  void expect_near(const Message& q, const Eigen::MatrixXd& all, const Eigen::VectorXd& mean) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto j = Eigen::Index(i);
      const double deviation = 1 / std::sqrt(all(j, j));
      EXPECT_NEAR(double(q.eta()[i] / q.lambda_vector()[i]), mean[j], 0.15 * deviation) << i;
      EXPECT_NEAR(double(q.lambda_vector()[i]) / all(j, j), 1, 0.1) << i;
    }
  }

  Recipe recipe_;
  std::unique_ptr<Dataset> data_;
  Eigen::MatrixXd precision_;
  Eigen::VectorXd eta_;
};

TEST_F(RegressionRounds, OfFedEpWithIvonEndAtThePooledPosterior) {
  expect_posterior(play({.algorithm = "fed_ep"}, 60));
}

// Flat cavities, and the prior as the clients' weight decay: q is the average of what each has by itself.
TEST_F(RegressionRounds, OfFedIvonWithFlatCavitiesEndAtTheAverageOfClientsOwnPosteriors) {
  constexpr double kDecay = 0.05;
  recipe_.client.weight_decay = kDecay;
  Eigen::MatrixXd precision = Eigen::MatrixXd::Zero(4, 4);
  Eigen::VectorXd eta = Eigen::VectorXd::Zero(4);
  double all = 0;
  for (std::size_t k = 0; k < 4; ++k) all += double(data_->clients()[k].second);
  for (std::size_t k = 0; k < 4; ++k) {
    const double n = double(data_->clients()[k].second);
    auto [h, b] = rows_of(k);
    h += kDecay * n * Eigen::MatrixXd::Identity(4, 4);
    const Eigen::MatrixXd diagonal = h.diagonal().asDiagonal();
    precision += n / all * diagonal;
    eta += n / all * diagonal * h.ldlt().solve(b);
  }
  expect_near(play({.algorithm = "fed_ivon", .cavity = CavityKind::flat}, 60), precision,
              precision.ldlt().solve(eta));
}

TEST_F(RegressionRounds, OfPviEndAtThePooledPosterior) {
  expect_posterior(play({.algorithm = "pvi"}, 60));
}

TEST_F(RegressionRounds, OfBayesAdmmEndAtThePooledPosteriorToThePowerOfOneOverT) {
  expect_posterior(play({.algorithm = "bayes_admm", .dual_rate = 0.3}, 120));
  expect_posterior(
      play({.algorithm = "bayes_admm", .penalty = 0.5, .dual_rate = 0.3, .temperature = 2}, 120),
      2);
}

}  // namespace
}  // namespace fedep
