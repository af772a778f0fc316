// Runs of the full family on a data set: linear regression with known noise, whose pooled posterior has
// a closed form; counts and classes against Newton's method on all rows together.
#include "fedep/sim/rows/row_inference.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/config/resolve.h"
#include "fedep/data/test_files.h"
#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/model/registry.h"
#include "fedep/round/run.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

Recipe regression_recipe(const std::string& method, const std::string& algorithm = "fed_ep") {
  Recipe recipe;
  recipe.data = {.name = "regression", .clients = 6, .dimension = 4, .examples = 20};
  recipe.model.noise = 0.7;
  recipe.server.clients_per_round = 6;
  recipe.server.prior = PriorSettings{.mean = 0.5, .precision = 2};
  recipe.server.damping.rule = DampingRule::none;
  recipe.phases = {{.algorithm = algorithm, .rounds = 1, .factors = FactorStart::flat}};
  recipe.phases[0].inference = InferenceSettings{.name = method, .family = FamilyChoice::full};
  return resolved(recipe);
}

struct Played {
  ServerState state;
  Metrics scores;
  bool operator==(const Played&) const = default;
};

Played played(const Recipe& recipe, std::size_t threads = 1,
              const std::filesystem::path& folder = {}, const RunHooks& hooks = {}) {
  const auto task = make_task(recipe, folder);
  const auto home = make_memory_store();
  const PlaceRow& row = find_place("cpu", threads);
  const auto place = row.make(recipe, *task, *home, {.threads = threads});
  const auto phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  const RunResult result = play_run({recipe, phases, task->population(), task->layout(), *place},
                                    task->initial_weights(), hooks);
  return {result.state, result.metrics};
}

// In double, of all clients' training rows.
DenseGaussian<double> pooled(const Recipe& recipe) {
  const auto task = make_task(recipe, "");
  const auto d = Eigen::Index(size_of(task->layout()));
  const PriorSettings prior = *recipe.server.prior;
  DenseGaussian<double> q{Eigen::VectorXd::Constant(d, prior.precision * prior.mean),
                          prior.precision * Eigen::MatrixXd::Identity(d, d)};
  const double per_row = 1 / (recipe.model.noise * recipe.model.noise);
  for (std::size_t k = 0; k < task->population().size(); ++k) {
    const GlmRows rows = rows_of(*task->data(), k, {TargetKind::real, recipe.model.noise});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Eigen::Map<const Eigen::VectorXd> x(rows.row(i).data(), d);
      q.eta += per_row * rows.y[i] * x;
      q.lambda += per_row * x * x.transpose();
    }
    const double decay = recipe.client.weight_decay * double(rows.size());
    q.lambda.diagonal().array() += decay;
  }
  return q;
}

// A client's training examples' loss at some weights, as the model has it.
double mean_loss_of(Model& model, const Dataset& data, std::size_t client,
                    const Eigen::VectorXd& theta) {
  std::vector<std::uint32_t> all(data.clients()[client].second);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  const std::vector<float> at(theta.begin(), theta.end());
  std::vector<float> gradient(at.size());
  return model.loss_gradient(at, batch, {}, gradient);
}

void expect_posterior(const Message& q, const DenseGaussian<double>& expected, double off) {
  ASSERT_TRUE(q.full());
  const Eigen::MatrixXd sigma = covariance(expected);
  const HostVector<float> center = mean(q), spread = variance(q);
  for (Eigen::Index i = 0; i < sigma.rows(); ++i) {
    EXPECT_NEAR(double(center[std::size_t(i)]), mean(expected)[i], off * std::sqrt(sigma(i, i)));
    EXPECT_NEAR(0.5 * std::log(double(spread[std::size_t(i)]) / sigma(i, i)), 0, off);
  }
}

TEST(RowInference, OneUndampedRoundIsThePooledPosteriorByEveryExactMethod) {
  for (const char* method : {"laplace", "quadrature", "ngvi"}) {
    for (const char* algorithm : {"fed_ep", "fed_sep"}) {
      const Recipe recipe = regression_recipe(method, algorithm);
      expect_posterior(played(recipe).state.global, pooled(recipe), 1e-4);
    }
  }
}

TEST(RowInference, WeightDecayIsAFactorOfTheLikelihood) {
  Recipe recipe = regression_recipe("laplace");
  recipe.client.weight_decay = 0.3;
  expect_posterior(played(recipe).state.global, pooled(recipe), 1e-4);
}

TEST(RowInference, SomeClientsARoundConvergeToIt) {
  Recipe recipe = regression_recipe("laplace");
  recipe.server.clients_per_round = 2;
  recipe.server.damping.rule = DampingRule::one_over_k;
  recipe.phases[0].rounds = 150;
  recipe.evaluate.every = 0;
  expect_posterior(played(recipe).state.global, pooled(recipe), 1e-3);
}

TEST(RowInference, ThreadsPlayTheSerialPlacesBits) {
  for (const RowMethod& method : row_methods()) {
    Recipe recipe = regression_recipe(std::string(method.name));
    recipe.server.clients_per_round = 4;
    recipe.phases[0].rounds = 3;
    recipe.evaluate.samples = 3;
    const Played serial = played(recipe);
    EXPECT_EQ(played(recipe, 3), serial) << method.name;
    EXPECT_FALSE(serial.scores.empty());
  }
}

// Root of the mean square over weights and seeds, in deviations.
double distance_of_hmc(bool falling) {
  constexpr int kSeeds = 4;
  double squares = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Recipe recipe = regression_recipe("hmc");
    recipe.seed = std::uint64_t(seed);
    recipe.server.damping.rule = DampingRule::one_over_k;
    recipe.evaluate.every = 0;
    recipe.phases[0].rounds = 60;
    recipe.data.clients = recipe.server.clients_per_round = 3;
    if (falling) recipe = decide_families(recipe, *make_task(recipe, "")).recipe;
    const DenseGaussian<double> exact = pooled(recipe);
    const Message q = played(recipe).state.global;
    const HostVector<float> center = mean(q);
    const Eigen::MatrixXd sigma = covariance(exact);
    for (Eigen::Index i = 0; i < sigma.rows(); ++i) {
      const double gap = double(center[std::size_t(i)]) - mean(exact)[i];
      squares += gap * gap / sigma(i, i) / double(sigma.rows()) / kSeeds;
    }
  }
  return std::sqrt(squares);
}

// A tenth of the step leaves a root tenth of the noise, and a little of what came before.
TEST(RowInference, StepsThatFallLeaveLessOfTheNoiseOfDraws) {
  const double falling = distance_of_hmc(true), whole = distance_of_hmc(false);
  EXPECT_LT(falling, 0.6 * whole);
  EXPECT_LT(falling, 0.02);
}

TEST(RowInference, RowsAreTheClientsExamplesWithAColumnOfOnes) {
  const Recipe recipe = regression_recipe("laplace");
  const auto task = make_task(recipe, "");
  const Dataset& data = *task->data();
  const std::size_t n = data.clients()[1].second, d = data.info().feature_count();
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(1, all, nullptr, batch);
  const GlmRows rows = rows_of(data, 1, {TargetKind::real, 0.7});
  ASSERT_EQ(rows.size(), n);
  EXPECT_EQ(rows.columns, d + 1);
  EXPECT_EQ(rows.client, data.clients()[1].first);
  EXPECT_EQ(rows.noise, 0.7);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(rows.y[i], double(batch.reals[i]));
    EXPECT_EQ(rows.row(i)[d], 1);
    for (std::size_t j = 0; j < d; ++j) EXPECT_EQ(rows.row(i)[j], double(batch.dense[i * d + j]));
  }
}

// Falls in three wards, likelier with age and in proportion to days.
class Counts : public testing::Test {
 protected:
  Counts() {
    std::string text = "ward,falls,days,age\n";
    for (int i = 0; i < 60; ++i) {
      text += std::string(1, "ABC"[i % 3]) + "," + std::to_string((i * i) % 5 * (i % 4) / 3) + "," +
              std::to_string(1 + i % 7) + "," + std::to_string(50 + (i * 13) % 40) + "\n";
    }
    folder_.write("falls.csv", text);
    recipe_.data = {.name = "tabular", .path = "falls.csv", .test_fraction = 0};
    recipe_.data.client_column = "ward";
    recipe_.data.label_column = "falls";
    recipe_.data.label = LabelKind::count;
    recipe_.data.exposure_column = "days";
    recipe_.server.clients_per_round = 3;
    recipe_.server.prior = PriorSettings{.mean = 0.5, .precision = 2};
    recipe_.phases = {{.algorithm = "fed_ep", .rounds = 60, .factors = FactorStart::flat}};
    recipe_.phases[0].inference =
        InferenceSettings{.name = "laplace", .family = FamilyChoice::full};
    recipe_ = resolved(recipe_);
  }
  std::unique_ptr<Task> task() const { return make_task(recipe_, folder_.path()); }

  TemporaryFolder folder_;
  Recipe recipe_;
};

TEST_F(Counts, RowsHaveThemAndTheLogsOfTheirExposures) {
  const auto task = this->task();
  const GlmRows rows = rows_of(*task->data(), 1, TargetKind::count);
  ASSERT_EQ(rows.size(), 20u);
  EXPECT_EQ(rows.outcome, GlmOutcome::count);
  for (int k = 0; k < 20; ++k) {
    const int i = 3 * k + 1;
    EXPECT_EQ(rows.y[std::size_t(k)], (i * i) % 5 * (i % 4) / 3);
    EXPECT_EQ(rows.offset.at(std::size_t(k)), double(float(std::log(1.0 + i % 7))));
  }
  recipe_.data.exposure_column.clear();
  EXPECT_TRUE(rows_of(*this->task()->data(), 1, TargetKind::count).offset.empty());
}

TEST_F(Counts, LaplaceConvergesToThePooledModeAndItsHessian) {
  const auto task = this->task();
  GlmRows all = rows_of(*task->data(), 0, TargetKind::count);
  for (const std::size_t client : {1u, 2u}) {
    const GlmRows more = rows_of(*task->data(), client, TargetKind::count);
    all.x.insert(all.x.end(), more.x.begin(), more.x.end());
    all.y.insert(all.y.end(), more.y.begin(), more.y.end());
    all.offset.insert(all.offset.end(), more.offset.begin(), more.offset.end());
  }
  const auto d = Eigen::Index(all.columns);
  const DenseGaussian<double> prior{Eigen::VectorXd::Constant(d, 1),
                                    2 * Eigen::MatrixXd::Identity(d, d)};
  expect_posterior(played(recipe_, 1, folder_.path()).state.global, laplace_tilted(prior, all).q,
                   1e-3);
}

// One of three diagnoses in three wards that differ in size, likelier with age or by sex.
class Classes : public testing::Test {
 protected:
  Classes() {
    std::string text = "ward,diagnosis,age,sex,dose\n";
    for (int i = 0; i < 90; ++i) {
      const int drawn = (i * 31 + (i * i) % 7) % 10;
      const int kind = drawn < 3 + i % 4 ? 0 : (drawn < 8 ? 1 : 2);
      text += std::string(1, "AABABC"[i % 6]) + ",k" + std::to_string(kind) + "," +
              std::to_string(50 + (i * 13) % 40) + "," + std::to_string(i % 2) + "," +
              std::to_string((i * 7) % 11) + "\n";
    }
    folder_.write("diagnoses.csv", text);
    recipe_.data = {.name = "tabular", .path = "diagnoses.csv", .test_fraction = 0};
    recipe_.data.client_column = "ward";
    recipe_.data.label_column = "diagnosis";
    recipe_.data.label = LabelKind::classes;
    recipe_.server.clients_per_round = 3;
    recipe_.server.prior = PriorSettings{.mean = 0, .precision = 2};
    recipe_.phases = {{.algorithm = "fed_ep", .rounds = 80, .factors = FactorStart::flat}};
    recipe_.phases[0].inference =
        InferenceSettings{.name = "laplace", .family = FamilyChoice::full};
    recipe_ = resolved(recipe_);
  }

  TemporaryFolder folder_;
  Recipe recipe_;
};

TEST_F(Classes, LaplaceConvergesToThePooledModeAndItsHessian) {
  const auto task = make_task(recipe_, folder_.path());
  ClassRows all = class_rows_of(*task->data(), 0);
  EXPECT_EQ(all.classes, 3u);
  for (const std::size_t client : {1u, 2u}) {
    const ClassRows more = class_rows_of(*task->data(), client);
    all.x.insert(all.x.end(), more.x.begin(), more.x.end());
    all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  }
  EXPECT_EQ(all.size(), 90u);
  const auto d = Eigen::Index(all.columns * all.classes);
  ASSERT_EQ(std::size_t(d), size_of(task->layout()));
  const DenseGaussian<double> prior{Eigen::VectorXd::Zero(d), 2 * Eigen::MatrixXd::Identity(d, d)};
  expect_posterior(played(recipe_, 1, folder_.path()).state.global, laplace_tilted(prior, all).q,
                   1e-3);
}

TEST_F(Classes, WeightDecayIsAFactorOfTheLikelihoodAndTheLossIsTheModels) {
  recipe_.client.weight_decay = 0.1;
  recipe_.phases[0].rounds = 1;
  recipe_.server.clients_per_round = 1;
  recipe_.server.damping.rule = DampingRule::none;
  double loss = 0;
  const Message q =
      played(recipe_, 1, folder_.path(),
             {.watch = [&](const RoundReport& round) { loss = round.numbers.loss_sum; }})
          .state.global;
  const auto task = make_task(recipe_, folder_.path());
  const auto model = make_model(recipe_.model, task->data()->info());
  bool found = false;
  for (std::size_t client = 0; client < 3; ++client) {
    const ClassRows rows = class_rows_of(*task->data(), client);
    const auto d = Eigen::Index(rows.columns * rows.classes);
    const double precision = 2 + 0.1 * double(rows.size());
    const GlmTilted alone = laplace_tilted(
        {Eigen::VectorXd::Zero(d), precision * Eigen::MatrixXd::Identity(d, d)}, rows);
    if ((in_double(q).lambda - alone.q.lambda).norm() > 1e-3 * alone.q.lambda.norm()) continue;
    found = true;
    EXPECT_LT((in_double(q).eta - alone.q.eta).norm(), 1e-3 * alone.q.eta.norm());
    EXPECT_NEAR(loss, std::log(3.0), 1e-6);  // at the prior's mean, zero
    EXPECT_NEAR(loss_of(rows, alone.mean) / double(rows.size()),
                mean_loss_of(*model, *task->data(), client, alone.mean), 1e-5);
  }
  EXPECT_TRUE(found);
}

TEST_F(Counts, TheLossOfAVisitIsTheModels) {
  double sum = 0;
  std::size_t steps = 0;
  recipe_.phases[0].rounds = 1;
  played(recipe_, 1, folder_.path(), {.watch = [&](const RoundReport& round) {
           sum = round.numbers.loss_sum;
           steps = round.numbers.steps;
         }});
  const auto task = this->task();
  const auto model = make_model(recipe_.model, task->data()->info());
  const Eigen::VectorXd at_prior = Eigen::VectorXd::Constant(Eigen::Index(model->size()), 0.5);
  double expected = 0;
  for (std::size_t client = 0; client < 3; ++client) {
    expected += mean_loss_of(*model, *task->data(), client, at_prior);
  }
  EXPECT_EQ(steps, 3u);
  EXPECT_NEAR(sum, expected, 1e-4);
}

}  // namespace
}  // namespace fedep
