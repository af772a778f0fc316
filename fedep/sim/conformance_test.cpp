// Every inference method where the answer is known: linear regression with known noise σ, whose
// tilted distribution is exactly Gaussian,
//
//   precision A = XᵀX/σ² + Λ_cavity + wd N_k,   mean A⁻¹ (Xᵀy/σ² + η_cavity).
//
// A method of the isotropic family sets its precision; one that needs variances estimates, with
// Langevin noise, 1 / diag(A⁻¹); every other one A's diagonal, IVON without a chain to start from.

#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/data/made_up/regression.h"
#include "fedep/data/test_batches.h"
#include "fedep/inference/infer_cohort.h"
#include "fedep/model/linear.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kFeatures = 3;
constexpr std::size_t kSize = kFeatures + 1;
constexpr double kDecay = 0.02;
constexpr double kNoise = 1.5;  // that the model assumes; the data's own is 1

struct Tilted {
  Eigen::MatrixXd precision;
  Eigen::VectorXd mean;
};

class Conformance : public testing::Test {
 protected:
  Message cavity() const { return {V{2, -1, 0.5f, 1}, V{4, 6, 5, 8}}; }

  // Solved densely.
  Tilted exact_tilted_of(std::size_t client) const {
    const std::size_t n = clients_[client].examples;
    const Batch batch = training_batch(*data_, client);
    Eigen::MatrixXd x(n, kSize);
    Eigen::VectorXd y(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < kFeatures; ++j) {
        x(Eigen::Index(i), Eigen::Index(j)) = double(batch.dense[i * kFeatures + j]);
      }
      x(Eigen::Index(i), kFeatures) = 1;
      y(Eigen::Index(i)) = double(batch.reals[i]);
    }
    const Message c = cavity();
    Tilted tilted{x.transpose() * x / (kNoise * kNoise), x.transpose() * y / (kNoise * kNoise)};
    for (std::size_t i = 0; i < kSize; ++i) {
      tilted.precision(Eigen::Index(i), Eigen::Index(i)) +=
          double(c.lambda_vector()[i]) + kDecay * double(n);
      tilted.mean(Eigen::Index(i)) += double(c.eta()[i]);
    }
    tilted.mean = tilted.precision.ldlt().solve(tilted.mean);
    return tilted;
  }

  // Largest curvature of any client's objective, which is N_k times less curved than -log tilted.
  double largest_curvature() const {
    double largest = 0;
    for (std::size_t k = 0; k < clients_.size(); ++k) {
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(exact_tilted_of(k).precision);
      largest = std::max(largest, solver.eigenvalues().maxCoeff() / double(clients_[k].examples));
    }
    return largest;
  }

  InferenceSettings textbook(const Method& method) const {
    InferenceSettings settings{.name = std::string(method.name), .alpha = 0.7};
    settings.epochs = 3000;
    settings.decay = 0.998;
    settings.langevin = method.needs_variance;
    if (method.own_chain) {  // averages that are as long as Laplace's and NGVI's
      settings.initial_scale = 1.0;
      settings.decay = 0.9995;
      settings.samples = 20;
    }
    return settings;
  }

  // Chains whose epochs are single steps on all examples of a client.
  ChainSettings long_chains(const Method& method) const {
    const bool moments = method.needs_variance;  // so their chains must sample
    ChainSettings settings;
    settings.keeps_variance = settings.langevin = moments;
    settings.client = {.epochs = moments ? 200000 : 2000, .batch = 1000};
    settings.client.optimizer = {.lr = (moments ? 0.1 : 1.0) / largest_curvature(),
                                 .momentum = moments ? 0.9 : 0.0};
    settings.client.weight_decay = kDecay;
    if (method.own_chain) {  // Newton's steps, as many as its precision's average needs
      settings.client.epochs = 20000;
      settings.client.optimizer = {.lr = 0.002, .momentum = 0.9};
    }
    return settings;
  }

  // One cohort of these clients, each with the same cavity.
  std::vector<ClientRun> infer(const std::vector<std::size_t>& rows, const ChainSettings& chain,
                               const InferenceSettings& inference, std::uint64_t seed = 3) {
    TestRound round("fed_sep", inference, from_mean(V{0.5f, 0, 0, -0.5f}, 20.0f));
    round.task().seed = seed;
    std::vector<Visit> visits;
    for (const std::size_t row : rows) visits.push_back(round.visit(clients_[row], cavity()));
    std::vector<ChainInput> inputs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      inputs.push_back({*data_, rows[i], visits[i], chain});
    }
    const auto cohort = make_cpu_cohort(*model_, inputs);
    return infer_cohort(*cohort, *round.phase.algorithm, inference);
  }

  const DataSettings settings_{
      .name = "regression", .clients = 8, .dimension = kFeatures, .examples = 40};
  std::unique_ptr<Dataset> data_ = open_regression(settings_, 11);
  std::vector<ClientInfo> clients_ = clients_of(data_->clients());
  std::unique_ptr<Model> model_ = make_linear(
      {.features = kFeatures, .outputs = 1, .target = TargetKind::real, .noise = kNoise});
};

// Epochs short, batches small and momentum on: what equality of bits is to be tested with.
ChainSettings busy_chains() {
  ChainSettings settings;
  settings.keeps_variance = settings.langevin = true;
  settings.client = {.epochs = 3, .batch = 7};
  settings.client.optimizer = {.lr = 0.02, .momentum = 0.9};
  settings.client.weight_decay = kDecay;
  return settings;
}

InferenceSettings brief(const Method& method) {
  InferenceSettings settings{.name = std::string(method.name), .alpha = 0.7};
  settings.epochs = 2;
  settings.samples = 2;
  settings.initial_scale = 0.5;
  return settings;
}

TEST_F(Conformance, EveryMethodFindsTheTiltedMean) {
  const Tilted exact = exact_tilted_of(1);
  const Eigen::VectorXd spread = exact.precision.inverse().diagonal().cwiseSqrt();
  for (const Method& method : methods()) {
    const V found = mean(infer({1}, long_chains(method), textbook(method))[0].tilted);
    for (std::size_t i = 0; i < kSize; ++i) {
      const Eigen::Index j = Eigen::Index(i);
      // Samples are averaged from the start on, and in M's case are noisy: 0.05 standard
      // deviations.
      EXPECT_NEAR(double(found[i]), exact.mean(j), 0.05 * spread(j)) << method.name << i;
    }
  }
}

TEST_F(Conformance, EveryMethodFindsThePrecisionThatItStandsFor) {
  const Tilted exact = exact_tilted_of(1);
  const Eigen::MatrixXd covariance = exact.precision.inverse();
  const double n = double(clients_[1].examples);
  for (const Method& method : methods()) {
    const ClientRun run = infer({1}, long_chains(method), textbook(method))[0];
    const V lambda = run.tilted.lambda_full();
    for (std::size_t i = 0; i < kSize; ++i) {
      const Eigen::Index j = Eigen::Index(i);
      const double found = double(lambda[i]);
      if (method.family == Family::isotropic) {  // one number for all, so it is set
        const double added = method.name == "map" ? 0 : 0.7 * n;
        EXPECT_FLOAT_EQ(lambda[i], float(double(cavity().lambda_vector()[i]) + added));
      } else if (method.needs_variance) {
        // Of the step's size 3 %; Monte Carlo over some 15,000 independent samples 1 %, four times.
        EXPECT_NEAR(1 / found / covariance(j, j), 1, 0.07) << method.name << i;
      } else {
        // x² ε² over 40 examples and thousands of draws: 0.7 %, four times.
        EXPECT_NEAR(found / exact.precision(j, j), 1, 0.03) << method.name << i;
      }
    }
  }
}

TEST_F(Conformance, ACohortOfEightIsEightCohortsOfOne) {
  std::vector<std::size_t> everybody(clients_.size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  std::set<std::size_t> sizes;
  for (const ClientInfo& client : clients_) sizes.insert(client.examples);
  ASSERT_GT(sizes.size(), 4u);  // unequal, so that some rows run out of batches before others
  for (const Method& method : methods()) {
    const std::vector<ClientRun> together = infer(everybody, busy_chains(), brief(method));
    for (const std::size_t k : everybody) {
      const std::vector<ClientRun> alone = infer({k}, busy_chains(), brief(method));
      EXPECT_EQ(together[k].tilted, alone[0].tilted) << method.name << " client " << k;
    }
  }
}

TEST_F(Conformance, ASeedRepeatsAndAnotherDoesNot) {
  for (const Method& method : methods()) {
    const Message once = infer({2}, busy_chains(), brief(method))[0].tilted;
    EXPECT_EQ(infer({2}, busy_chains(), brief(method))[0].tilted, once) << method.name;
    EXPECT_FALSE(infer({2}, busy_chains(), brief(method), 4)[0].tilted == once) << method.name;
  }
}

TEST_F(Conformance, AClientWithoutDataLeavesTheCavityAsItIs) {
  clients_[5].examples = 0;
  for (const Method& method : methods()) {
    for (const std::vector<std::size_t>& rows : {std::vector<std::size_t>{5}, {4, 5, 6}}) {
      const std::vector<ClientRun> runs = infer(rows, busy_chains(), brief(method));
      EXPECT_EQ(runs[rows.size() / 2].tilted, cavity()) << method.name;
    }
  }
}

// Its steps are of all N_k examples already: a batch's sum in place of its mean would count them again.
TEST_F(Conformance, AMethodWithAChainOfItsOwnTakesABatchsMean) {
  for (const Method& method : methods()) {
    if (!method.own_chain) continue;
    ChainSettings chains = busy_chains();
    const Message averaged = infer({2}, chains, brief(method))[0].tilted;
    chains.client.loss_times_batch = true;
    EXPECT_EQ(infer({2}, chains, brief(method))[0].tilted, averaged) << method.name;
  }
}

}  // namespace
}  // namespace fedep
