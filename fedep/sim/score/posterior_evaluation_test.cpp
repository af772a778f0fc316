#include "fedep/sim/score/posterior_evaluation.h"

#include <cmath>
#include <string_view>

#include <gtest/gtest.h>

#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/random/stream.h"
#include "fedep/sim/score/evaluation.h"

namespace fedep {
namespace {

using V = HostVector<float>;

double value_of(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

std::unique_ptr<Dataset> synthetic(int examples = 200) {
  return open_synthetic({.name = "synthetic", .clients = 7, .dimension = 5, .examples = examples},
                        3, "");
}

std::unique_ptr<Model> linear_for(const Dataset& data) {
  return make_linear({.features = data.info().feature_count(),
                      .outputs = data.info().outputs,
                      .target = data.info().target});
}

ServerState state_for(const Model& model) {
  V mean(model.size());
  fill_normal({.seed = 8}, mean.span());
  ServerState state;
  state.phase = 0;
  state.round = 12;
  state.global = from_mean(mean, constant_like(mean, 3.0f));
  return state;
}

TEST(PosteriorEvaluation, ScoresAsARunDoes) {
  const auto data = synthetic();
  const auto model = linear_for(*data);
  const ServerState state = state_for(*model);
  const PosteriorEvaluation result =
      evaluate_posterior(*data, *model, state, DrawSettings{.seed = 5, .round = 12, .samples = 4});
  Evaluation evaluation(*data, linear_for(*data));
  const V mean = point_estimate(state);
  for (const auto& [name, value] : evaluation.at(mean)) {
    EXPECT_DOUBLE_EQ(value_of(result.metrics, name), value) << name;
  }
  for (const auto& [name, value] :
       evaluation.marginal(state.global, {.seed = 5, .round = 12, .samples = 4})) {
    EXPECT_NEAR(value_of(result.metrics, name), value, 1e-12) << name;
  }
  const std::vector<ClientMetrics> clients = evaluation.per_client(mean);
  ASSERT_EQ(result.clients.size(), clients.size());
  std::size_t examples = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(result.clients[i].client, clients[i].client);
    examples += result.clients[i].examples;
    for (const auto& [name, value] : clients[i].metrics) {
      EXPECT_DOUBLE_EQ(value_of(result.clients[i].metrics, name), value) << name;
    }
  }
  EXPECT_EQ(examples, result.examples);
  EXPECT_EQ(examples, data->test_size());
}

// Of a posterior without doubt, whose draws are all its mean: at the mean and over draws a client's
// scores are then the same, and those that a run finds in batches of another length.
TEST(PosteriorEvaluation, ClientsHaveTheirOwnScoresInWhicheverBatchTheyLie) {
  const auto data = synthetic(2000);
  ASSERT_GT(data->test_size(), 1500u);  // so that there are several batches, the last not full
  const auto model = linear_for(*data);
  ServerState state = state_for(*model);
  const V mean = point_estimate(state);
  state.global = from_mean(mean, constant_like(mean, 1e14f));
  const PosteriorEvaluation result =
      evaluate_posterior(*data, *model, state, DrawSettings{.samples = 2});
  Evaluation evaluation(*data, linear_for(*data), {.chunk = 64});
  const std::vector<ClientMetrics> clients = evaluation.per_client(mean);
  ASSERT_EQ(result.clients.size(), clients.size());
  std::size_t examples = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const Metrics& found = result.clients[i].metrics;
    EXPECT_EQ(result.clients[i].client, clients[i].client);
    EXPECT_NEAR(value_of(found, "nll"), value_of(clients[i].metrics, "nll"), 1e-6);
    EXPECT_NEAR(value_of(found, "nll_marginal"), value_of(clients[i].metrics, "nll"), 1e-4);
    examples += result.clients[i].examples;
  }
  EXPECT_EQ(examples, data->test_size());
}

TEST(PosteriorEvaluation, ReliabilityBinsMakeTheCalibrationError) {
  const auto data = synthetic();
  const auto model = linear_for(*data);
  const PosteriorEvaluation result =
      evaluate_posterior(*data, *model, state_for(*model), DrawSettings{.samples = 3});
  EXPECT_EQ(result.point.size(), kCalibrationBins);
  EXPECT_EQ(result.marginal.size(), kCalibrationBins);
  EXPECT_DOUBLE_EQ(expected_calibration_error(result.point), value_of(result.metrics, "ece"));
  EXPECT_DOUBLE_EQ(expected_calibration_error(result.marginal),
                   value_of(result.metrics, "ece_marginal"));
  EXPECT_GE(value_of(result.metrics, "ece_equal_mass"), 0);
}

TEST(PosteriorEvaluation, ClientsOfOneExampleEachAverageToTheWhole) {
  // Tags: rows are cut out of the batch's sparse lists.
  Batch test, train;
  ClientRows test_clients, train_clients;
  Stream stream({.seed = 4});
  for (std::uint32_t i = 0; i < 20; ++i) {
    for (int j = 0; j < 2; ++j) test.dense.push_back(float(stream.normal()));
    for (std::uint32_t tag = 0; tag < 3; ++tag) {
      if (stream.uniform() < 0.5) test.tags.columns.push_back(tag);
    }
    test.tags.offsets.push_back(std::uint32_t(test.tags.columns.size()));
    test_clients.add("c" + std::to_string(i), 1);
    ++test.size;
  }
  train.size = 1;
  train.dense = {1, 2};
  train.tags.offsets = {0, 0};
  train_clients.add("c0", 1);
  const auto data =
      memory_dataset({.name = "tags",
                      .features = {2},
                      .target = TargetKind::tags,
                      .outputs = 3,
                      .feature_names = {},
                      .output_names = {}},
                     {train_clients, batch_rows(train)}, {test_clients, batch_rows(test)});
  const auto model = linear_for(*data);
  const PosteriorEvaluation result =
      evaluate_posterior(*data, *model, state_for(*model), std::nullopt);
  ASSERT_EQ(result.clients.size(), 20u);
  double nll = 0;
  for (const ClientEvaluation& client : result.clients) nll += value_of(client.metrics, "nll") / 20;
  EXPECT_NEAR(nll, value_of(result.metrics, "nll"), 1e-12);
  EXPECT_TRUE(result.point.empty());
  EXPECT_TRUE(result.marginal.empty());
}

}  // namespace
}  // namespace fedep
