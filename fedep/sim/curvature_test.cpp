// A last round of curvature: exactly the pooled posterior's covariance where that is Gaussian, the pooled
// Laplace covariance elsewhere, and what a diagonal run lacks where columns correlate.
#include "fedep/sim/curvature.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/data/test_files.h"
#include "fedep/inference/rows/full_laplace.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/run.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

ServerState played(const Recipe& recipe, Task& task) {
  const auto home = make_memory_store();
  const auto place = find_place("cpu", 1).make(recipe, task, *home, {.threads = 1});
  const auto phases =
      plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  return play_run({recipe, phases, task.population(), task.layout(), *place},
                  task.initial_weights())
      .state;
}

Recipe diagonal_recipe() {
  Recipe recipe;
  recipe.server.prior = PriorSettings{.mean = 0.5, .precision = 2};
  recipe.client.epochs = 20;
  recipe.client.batch = 100000;
  recipe.evaluate.every = 0;
  recipe.phases = {{.algorithm = "fed_ep", .rounds = 8, .factors = FactorStart::flat}};
  recipe.phases[0].inference =
      InferenceSettings{.name = "laplace", .family = FamilyChoice::diagonal};
  recipe.phases[0].curvature = CurvatureChoice::full;
  return recipe;
}

template <class Rows>
void append(Rows& all, const Rows& more) {
  all.x.insert(all.x.end(), more.x.begin(), more.x.end());
  if constexpr (requires { all.labels; }) {
    all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  } else {
    all.y.insert(all.y.end(), more.y.begin(), more.y.end());
    all.offset.insert(all.offset.end(), more.offset.begin(), more.offset.end());
  }
}

GlmRows all_rows(const Task& task, const Likelihood& likelihood) {
  GlmRows all = rows_of(*task.data(), 0, likelihood);
  for (std::size_t k = 1; k < task.population().size(); ++k) {
    append(all, rows_of(*task.data(), k, likelihood));
  }
  return all;
}

double relative_gap(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a - b).norm() / b.norm();
}

DenseGaussian<double> prior_of(const Recipe& recipe, Eigen::Index d) {
  const PriorSettings prior = *recipe.server.prior;
  return {Eigen::VectorXd::Constant(d, prior.precision * prior.mean),
          prior.precision * Eigen::MatrixXd::Identity(d, d)};
}

// The covariance does not depend on the mean, so it does not matter how far rounds came.
TEST(LastCurvature, OfLinearRegressionIsExactlyThePooledPosteriors) {
  Recipe recipe = diagonal_recipe();
  recipe.data = {.name = "regression", .clients = 6, .dimension = 4, .examples = 20};
  recipe.model.noise = 0.7;
  recipe.client.weight_decay = 0.3;
  recipe.server.clients_per_round = 2;
  recipe = resolved(recipe);
  const auto task = make_task(recipe, "");
  check_curvature(recipe, *task);
  const ServerState state = played(recipe, *task);
  const GlmRows all = all_rows(*task, {TargetKind::real, 0.7});
  DenseGaussian<double> prior = prior_of(recipe, Eigen::Index(all.columns));
  prior.lambda.diagonal().array() += 0.3 * double(all.size());
  const GlmTilted exact = laplace_tilted(prior, all);

  const Curvature curvature = *play_curvature(recipe, *task, state);
  EXPECT_EQ(curvature.round, 8);
  const DenseGaussian<double> q = posterior_of(curvature, state.prior);
  EXPECT_LT(relative_gap(covariance(q), exact.covariance), 1e-13);
  EXPECT_EQ(q.lambda, q.lambda.transpose());
  // One Newton step is exact here.
  const Eigen::VectorXd sd = exact.covariance.diagonal().cwiseSqrt();
  const double distance = (mean(q) - exact.mean).cwiseAbs().cwiseQuotient(sd).maxCoeff();
  EXPECT_NEAR(distance_to_mode(curvature, state.prior, q) / distance, 1, 1e-6);
  EXPECT_GT(distance, 1e-4);
}

// A made-up design with correlated columns, as a table.
struct Design {
  double correlation = 0;
  std::vector<int> sites = {40, 30, 20};
  int columns = 3;
  std::string outcome = "yes_no";  // or class, count
  std::uint64_t seed = 1;
};

std::string table_of(const Design& design) {
  Stream stream({.seed = design.seed, .purpose = Purpose::test});
  std::vector<double> truth;
  for (int j = 0; j < design.columns; ++j) truth.push_back(0.3 * stream.normal());
  std::string text = "site,y";
  for (int j = 0; j < design.columns; ++j) text += fmt::format(",x{}", j);
  text += '\n';
  for (std::size_t site = 0; site < design.sites.size(); ++site) {
    for (int i = 0; i < design.sites[site]; ++i) {
      const double common = stream.normal();
      double f = 0;
      std::string columns;
      for (int j = 0; j < design.columns; ++j) {
        const double x = std::sqrt(design.correlation) * common +
                         std::sqrt(1 - design.correlation) * stream.normal();
        columns += fmt::format(",{}", x);
        f += truth[std::size_t(j)] * x;
      }
      const int yes = stream.uniform() < 1 / (1 + std::exp(-f)) ? 1 : 0;
      const int y = design.outcome == "yes_no" ? yes : yes + int(stream.below(2));
      text += fmt::format("s{},{}{}\n", site, y, columns);
    }
  }
  return text;
}

class TableCurvature : public testing::Test {
 protected:
  Recipe table_recipe(const Design& design) {
    folder_.write("table.csv", table_of(design));
    Recipe recipe = diagonal_recipe();
    recipe.data = {.name = "tabular", .path = "table.csv", .test_fraction = 0};
    recipe.data.client_column = "site";
    recipe.data.label_column = "y";
    recipe.data.label = design.outcome == "class"   ? LabelKind::classes
                        : design.outcome == "count" ? LabelKind::count
                                                    : LabelKind::yes_no;
    recipe.client.optimizer.lr = 0.1;
    recipe.server.clients_per_round = int(design.sites.size());
    return resolved(recipe);
  }
  std::unique_ptr<Task> task_of(const Recipe& recipe) { return make_task(recipe, folder_.path()); }
  std::string refusal(const Recipe& recipe) {
    return message_of<InputError>([&] { check_curvature(recipe, *task_of(recipe)); });
  }

  TemporaryFolder folder_;
};

TEST_F(TableCurvature, IsThePooledHessianAtTheMeanThatRoundsCameTo) {
  for (const char* outcome : {"yes_no", "count"}) {
    const Recipe recipe = table_recipe({.outcome = outcome});
    const auto task = task_of(recipe);
    const ServerState state = played(recipe, *task);
    const Curvature curvature = *play_curvature(recipe, *task, state);
    const GlmRows all = all_rows(*task, task->data()->info().target);
    const DenseGaussian<double> prior = prior_of(recipe, Eigen::Index(all.columns));
    Eigen::VectorXd at(Eigen::Index(all.columns));
    const HostVector<float> center = mean(state.global);
    for (std::size_t i = 0; i < all.columns; ++i) at[Eigen::Index(i)] = double(center[i]);
    const DenseGaussian<double> q = posterior_of(curvature, state.prior);
    EXPECT_LT(relative_gap(q.lambda, prior.lambda + likelihood_hessian(all, at)), 1e-13);
    EXPECT_LT((mean(q) - at).norm(), 1e-12);
  }
}

TEST_F(TableCurvature, OfClassesIsThePooledHessianToo) {
  const Recipe recipe = table_recipe({.outcome = "class"});
  const auto task = task_of(recipe);
  const ServerState state = played(recipe, *task);
  ClassRows all = class_rows_of(*task->data(), 0);
  for (const std::size_t k : {1u, 2u}) append(all, class_rows_of(*task->data(), k));
  const DenseGaussian<double> q = posterior_of(*play_curvature(recipe, *task, state), state.prior);
  const DenseGaussian<double> prior = prior_of(recipe, q.size());
  EXPECT_LT(relative_gap(q.lambda, prior.lambda + likelihood_hessian(all, mean(q))), 1e-12);
}

// Deviations over the pooled Laplace posterior's, weight by weight.
std::vector<double> ratios(const Eigen::VectorXd& variance, const Eigen::MatrixXd& exact) {
  std::vector<double> out;
  for (Eigen::Index i = 0; i + 1 < variance.size(); ++i) {  // not the intercept's
    out.push_back(std::sqrt(variance[i] / exact(i, i)));
  }
  return out;
}

TEST_F(TableCurvature, MendsWhatADiagonalRunLacksWhereColumnsCorrelate) {
  Recipe recipe = table_recipe(
      {.correlation = 0.9, .sites = {300, 210, 150, 90, 60, 30}, .columns = 12, .seed = 4});
  recipe.server.prior = PriorSettings{.mean = 0, .precision = 1 / 0.09};
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0.5};
  recipe.client.epochs = 300;
  recipe.client.optimizer = {.name = "sgd", .lr = 0.02, .momentum = 0.9};
  recipe.phases[0].rounds = 20;
  recipe = resolved(recipe);
  const auto task = task_of(recipe);
  const ServerState state = played(recipe, *task);
  const GlmRows all = all_rows(*task, TargetKind::binary);
  const GlmTilted exact = laplace_tilted(prior_of(recipe, Eigen::Index(all.columns)), all);
  const Curvature curvature = *play_curvature(recipe, *task, state);
  const DenseGaussian<double> q = posterior_of(curvature, state.prior);
  Eigen::VectorXd diagonal(q.size());
  const HostVector<float> of_rounds = variance(state.global);
  for (Eigen::Index i = 0; i < q.size(); ++i) {
    diagonal[i] = double(of_rounds[std::size_t(i)]);
  }
  const std::vector<double> before = ratios(diagonal, exact.covariance);
  const std::vector<double> after = ratios(covariance(q).diagonal(), exact.covariance);
  RecordProperty("before", fmt::format("{:.3f} to {:.3f}", *std::ranges::min_element(before),
                                       *std::ranges::max_element(before)));
  RecordProperty("after", fmt::format("{:.3f} to {:.3f}", *std::ranges::min_element(after),
                                      *std::ranges::max_element(after)));
  RecordProperty("distance", fmt::format("{:.3f}", distance_to_mode(curvature, state.prior, q)));
  EXPECT_LT(*std::ranges::max_element(before), 0.7);
  EXPECT_GT(*std::ranges::min_element(after), 0.97);
  EXPECT_LT(*std::ranges::max_element(after), 1.03);
}

TEST_F(TableCurvature, WhatStandsInItsWayIsNamed) {
  Recipe recipe = table_recipe({});
  EXPECT_EQ(refusal(recipe), "");
  const auto because = [&](const auto& change) {
    Recipe changed = recipe;
    change(changed);
    const std::string text = refusal(changed);
    return text.substr(text.find("because ") + 8);
  };
  EXPECT_EQ(because([](Recipe& r) { r.phases[0].algorithm = "fed_avg"; }),
            "fed_avg infers no posterior");
  EXPECT_EQ(because([](Recipe& r) { r.phases[0].inference->family = FamilyChoice::full; }),
            "the phase's family is full already; family = \"diagonal\" is not");
  EXPECT_EQ(because([](Recipe& r) { r.phases.push_back(r.phases[0]); }),
            "the phase is not the last one");
  EXPECT_EQ(because([](Recipe& r) {
              r.data = {.name = "regression", .clients = 3, .dimension = 2000, .examples = 2};
            }),
            "the model has 2001 weights, more than 2000");
  EXPECT_EQ(because([](Recipe& r) {
              r.data = {.name = "random_images", .partition = "iid", .clients = 2, .examples = 4};
              r.model.name = "resnet_small";
            }),
            "model.name is resnet_small, not linear");
  recipe.phases.push_back(recipe.phases[0]);
  recipe.phases[0].curvature = CurvatureChoice::none;
  EXPECT_EQ(refusal(recipe), "");
  EXPECT_TRUE(has_curvature(recipe));
}

}  // namespace
}  // namespace fedep
