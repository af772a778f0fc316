#include "fedep/sim/score/evaluation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/calibration_rows.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/test_batches.h"
#include "fedep/model/linear.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"
#include "fedep/sim/task.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// [examples, 3] normals with one of three classes, of clients with 1, 7, 500, 13 and 700 test
// examples.
std::unique_ptr<Dataset> three_classes() {
  const std::vector<std::size_t> sizes{1, 7, 500, 13, 700};
  Batch train, test;
  ClientRows train_clients, test_clients;
  Stream stream({.seed = 4});
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) {
      for (int j = 0; j < 3; ++j) test.dense.push_back(float(stream.normal()));
      test.labels.push_back(std::int32_t(stream.below(3)));
    }
    test.size += sizes[k];
    test_clients.add("client-" + std::to_string(k), sizes[k]);
  }
  train.size = 1;
  train.dense = {1, 2, 3};
  train.labels = {0};
  train_clients.add("client-0", 1);
  DatasetInfo info{.name = "three classes",
                   .features = {3},
                   .outputs = 3,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

std::unique_ptr<Model> linear_for(const Dataset& data) {
  return make_linear({.features = data.info().feature_count(),
                      .outputs = data.info().outputs,
                      .target = data.info().target});
}

V some_weights(std::size_t size, std::uint32_t step) {
  V theta(size);
  fill_normal({.seed = 6, .step = step}, theta.span());
  return theta;
}

double value_of(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

// Class probabilities of every test example, at theta, in double.
std::vector<std::array<double, 3>> probabilities_at(const V& theta, const Batch& all) {
  std::vector<std::array<double, 3>> out;
  for (std::size_t i = 0; i < all.size; ++i) {
    std::array<double, 3> p{};
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      double z = double(theta[9 + c]);
      for (std::size_t j = 0; j < 3; ++j)
        z += double(all.dense[3 * i + j]) * double(theta[3 * j + c]);
      sum += p[c] = std::exp(z);
    }
    for (double& x : p) x /= sum;
    out.push_back(p);
  }
  return out;
}

TEST(Evaluation, IsTheAverageOverAllTestExamples) {
  const auto data = three_classes();
  const V theta = some_weights(12, 1);
  const Batch all = test_batch(*data);
  const auto p = probabilities_at(theta, all);
  double nll = 0, correct = 0;
  for (std::size_t i = 0; i < all.size; ++i) {
    const std::size_t y = std::size_t(all.labels[i]);
    nll -= std::log(p[i][y]) / double(all.size);
    correct += std::max_element(p[i].begin(), p[i].end()) - p[i].begin() == std::ptrdiff_t(y);
  }
  Evaluation evaluation(*data, linear_for(*data));
  const Metrics metrics = evaluation.at(theta);
  EXPECT_NEAR(value_of(metrics, "nll"), nll, 1e-6);
  EXPECT_EQ(value_of(metrics, "accuracy"), correct / double(all.size));
}

TEST(Evaluation, DoesNotDependOnChunksOrOnWhatIsKeptInMemory) {
  const auto data = three_classes();
  const V theta = some_weights(12, 1);
  const Message q = from_mean(theta, 9.0f);
  Evaluation whole(*data, linear_for(*data), {.chunk = 5000});
  for (const std::size_t chunk : {1u, 100u, 500u, 1221u}) {
    for (const std::size_t bytes : {0u, 1u << 20}) {
      Evaluation evaluation(*data, linear_for(*data), {.chunk = chunk, .cache_bytes = bytes});
      const Metrics found = evaluation.at(theta), expected = whole.at(theta);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].first, expected[i].first);
        EXPECT_NEAR(found[i].second, expected[i].second, 1e-6) << found[i].first << chunk;
      }
      EXPECT_NEAR(value_of(evaluation.marginal(q, {.samples = 3}), "nll_marginal"),
                  value_of(whole.marginal(q, {.samples = 3}), "nll_marginal"), 1e-6);
    }
  }
  Evaluation kept(*data, linear_for(*data)), read(*data, linear_for(*data), {.cache_bytes = 0});
  EXPECT_EQ(kept.at(theta), read.at(theta));
  EXPECT_EQ(kept.at(theta), kept.at(theta));
}

TEST(Evaluation, MarginalisedAveragesTheProbabilitiesOfDraws) {
  const auto data = three_classes();
  const Batch all = test_batch(*data);
  for (const Message& q :
       {from_mean(some_weights(12, 1), 4.0f), from_mean(some_weights(12, 1), V(12, 0.5f))}) {
    std::vector<std::array<double, 3>> average(all.size);
    for (std::uint32_t draw = 0; draw < 10; ++draw) {
      V noise(12);
      fill_normal({.seed = 21, .purpose = Purpose::posterior, .round = 33, .step = draw},
                  noise.span());
      const auto p = probabilities_at(sample(q, noise), all);
      for (std::size_t i = 0; i < all.size; ++i) {
        for (std::size_t c = 0; c < 3; ++c) average[i][c] += p[i][c] / 10;
      }
    }
    double nll = 0;
    for (std::size_t i = 0; i < all.size; ++i) {
      nll -= std::log(average[i][std::size_t(all.labels[i])]) / double(all.size);
    }
    Evaluation evaluation(*data, linear_for(*data));
    const Metrics metrics = evaluation.marginal(q, {.seed = 21, .round = 33, .samples = 10});
    EXPECT_NEAR(value_of(metrics, "nll_marginal"), nll, 1e-6);
    EXPECT_LT(nll, value_of(evaluation.at(mean(q)), "nll"));  // these labels are noise
    EXPECT_EQ(evaluation.marginal(q, {.seed = 21, .round = 33, .samples = 10}), metrics);
    EXPECT_NE(evaluation.marginal(q, {.seed = 21, .round = 34, .samples = 10}), metrics);
  }
}

TEST(Evaluation, OfACertainPosteriorIsThatAtItsMean) {
  const auto data = three_classes();
  const V theta = some_weights(12, 1);
  Evaluation evaluation(*data, linear_for(*data));
  const Metrics marginal = evaluation.marginal(from_mean(theta, 1e12f), {.samples = 4});
  for (const auto& [name, value] : evaluation.at(theta)) {
    EXPECT_NEAR(value_of(marginal, name + "_marginal"), value, 1e-5);
  }
}

TEST(Evaluation, OfARegressionHasThePredictiveDistributionInClosedForm) {
  // Of x: N(x·μ, σ² + Σ x² / λ).
  const double noise = 1.5;
  const auto data = open_regression(
      {.name = "regression", .clients = 3, .dimension = 2, .examples = 40, .test_fraction = 0.5},
      5);
  const V mu{0.5f, 1, -0.5f}, lambda{2, 4, 8};
  const Batch all = test_batch(*data);
  double nll = 0, square = 0;
  for (std::size_t i = 0; i < all.size; ++i) {
    double z = double(mu[2]), variance = noise * noise + 1 / double(lambda[2]);
    for (std::size_t j = 0; j < 2; ++j) {
      const double x = double(all.dense[2 * i + j]);
      z += x * double(mu[j]);
      variance += x * x / double(lambda[j]);
    }
    const double error = double(all.reals[i]) - z;
    square += error * error / double(all.size);
    nll +=
        (0.5 * std::log(2 * M_PI * variance) + error * error / (2 * variance)) / double(all.size);
  }
  Evaluation evaluation(*data, make_model({.name = "linear", .noise = noise}, data->info()));
  const Metrics metrics = evaluation.marginal(from_mean(mu, lambda), {.samples = 20000});
  EXPECT_NEAR(value_of(metrics, "nll_marginal"), nll, 0.01 * nll);
  EXPECT_NEAR(value_of(metrics, "rmse_marginal"), std::sqrt(square), 0.01 * std::sqrt(square));
  EXPECT_NEAR(value_of(evaluation.at(mu), "nll"),
              0.5 * std::log(2 * M_PI * noise * noise) + square / (2 * noise * noise), 1e-5);
}

TEST(Evaluation, PerClientAddsUpToTheWhole) {
  const auto data = three_classes();
  const V theta = some_weights(12, 1);
  std::map<std::string, double> sizes;
  for (std::size_t i = 0; i < data->test_size(); ++i) {
    sizes[data->test_clients()[data->test_client(i)]] += 1;
  }
  for (const std::size_t chunk :
       {100u, 500u}) {  // clients that lie across chunks, and several in one
    Evaluation evaluation(*data, linear_for(*data), {.chunk = chunk});
    const std::vector<ClientMetrics> clients = evaluation.per_client(theta);
    ASSERT_EQ(clients.size(), 5u);
    double accuracy = 0, nll = 0;
    for (const ClientMetrics& client : clients) {
      accuracy += sizes.at(client.client) * value_of(client.metrics, "accuracy");
      nll += sizes.at(client.client) * value_of(client.metrics, "nll");
    }
    const Metrics whole = evaluation.at(theta);
    EXPECT_NEAR(accuracy / double(data->test_size()), value_of(whole, "accuracy"), 1e-12);
    EXPECT_NEAR(nll / double(data->test_size()), value_of(whole, "nll"), 1e-9);
  }
}

TEST(Subsample, HasSoManyExamplesAndNoneTwice) {
  const std::vector<std::size_t> chosen = subsample({.seed = 3, .round = 8, .examples = 200}, 1221);
  EXPECT_EQ(chosen.size(), 200u);
  EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal()), chosen.end());
  EXPECT_LT(chosen.back(), 1221u);
}

TEST(Subsample, IsAnotherForEveryRoundAndSeedAndAlwaysTheSame) {
  const auto of = [](std::uint64_t seed, std::int64_t round) {
    return subsample({.seed = seed, .round = round, .examples = 200}, 1221);
  };
  EXPECT_EQ(of(3, 8), of(3, 8));
  EXPECT_NE(of(3, 8), of(3, 9));
  EXPECT_NE(of(3, 8), of(4, 8));
}

TEST(Subsample, OfNoneOrOfMoreThanThereAreIsAll) {
  for (const std::size_t examples : {0u, 4u, 5u, 1000u}) {
    EXPECT_EQ(subsample({.examples = examples}, 4), (std::vector<std::size_t>{0, 1, 2, 3}));
  }
  EXPECT_EQ(subsample({.examples = 3}, 4).size(), 3u);
  EXPECT_TRUE(subsample({.examples = 3}, 0).empty());
}

TEST(Evaluation, OfASubsampleIsTheAverageOverItAndNothingElse) {
  const auto data = three_classes();
  const V theta = some_weights(12, 1);
  const Batch all = test_batch(*data);
  const auto p = probabilities_at(theta, all);
  const Subsample which{.seed = 3, .round = 8, .examples = 700};
  double nll = 0;
  for (const std::size_t i : subsample(which, all.size)) {
    nll -= std::log(p[i][std::size_t(all.labels[i])]) / 700;
  }
  for (const std::size_t bytes : {0u, 1u << 20}) {
    Evaluation evaluation(*data, linear_for(*data), {.chunk = 100, .cache_bytes = bytes});
    EXPECT_NEAR(value_of(evaluation.at(theta, which), "nll"), nll, 1e-6);
    EXPECT_GT(std::abs(value_of(evaluation.at(theta), "nll") - nll), 1e-5);
    const Metrics certain = evaluation.marginal(
        from_mean(theta, 1e12f), {.seed = 3, .round = 8, .samples = 2, .examples = 700});
    EXPECT_NEAR(value_of(certain, "nll_marginal"), nll, 1e-5);
    EXPECT_EQ(evaluation.at(theta, {.examples = 5000}), evaluation.at(theta));
  }
}

TEST(Evaluation, WithoutTestExamplesHasNoMetrics) {
  const auto data =
      open_synthetic({.name = "synthetic", .clients = 2, .dimension = 4, .test_fraction = 0}, 1);
  ASSERT_EQ(data->test_size(), 0u);
  Evaluation evaluation(*data, linear_for(*data));
  EXPECT_TRUE(std::isnan(value_of(evaluation.at(V(50)), "accuracy")));
  EXPECT_TRUE(evaluation.per_client(V(50)).empty());
}

TEST(LearningTask, ScoresAsManyExamplesAsItsRecipeSays) {
  const std::string text = R"(
    data = { name = "synthetic", clients = 4, dimension = 5, examples = 200 }
    model = { name = "linear", initial_scale = 1.0 }
    server = { clients_per_round = 2 }
    phase = [{ algorithm = "fed_avg", rounds = 5 }]
  )";
  const auto scores = [&](const std::string& line, std::int64_t round) {
    const Recipe recipe = parse_recipe(line + text);
    const auto task = make_task(recipe, {});
    ServerState state = initial_server_state(recipe.server, task->initial_weights());
    state.round = round;
    return task->evaluate(state, false);
  };
  const std::string part = "evaluate.examples = 40\n";
  EXPECT_EQ(scores("", 1), scores("", 2));
  EXPECT_EQ(scores(part, 1), scores(part, 1));
  EXPECT_NE(scores(part, 1), scores(part, 2));
  EXPECT_NE(scores(part, 1), scores("", 1));
  EXPECT_EQ(scores("evaluate.examples = 100000\n", 1), scores("", 1));
}

TEST(LearningTask, ScoresTrainingExamplesThatItLeavesOutWhenItValidates) {
  const auto recipe = [](const std::string& line) {
    return parse_recipe(R"(
      model = { name = "linear" }
      server = { clients_per_round = 2 }
      phase = [{ algorithm = "fed_avg", rounds = 5 }]
      [data]
      name = "synthetic"
      clients = 4
      examples = 200
    )" + line);
  };
  const auto whole = make_task(recipe(""), {});
  const auto part = make_task(recipe("validation_fraction = 0.25\n"), {});
  ASSERT_EQ(part->population().size(), whole->population().size());
  for (std::size_t k = 0; k < whole->population().size(); ++k) {
    const double all = double(whole->population()[k].examples);
    EXPECT_NEAR(double(part->population()[k].examples), 0.75 * all, 0.5);
  }
}

TEST(LearningTask, MarginalisesWhenItIsDueAndThereIsAPosterior) {
  const Recipe recipe = parse_recipe(R"(
    data = { name = "synthetic", clients = 4, dimension = 5, examples = 20 }
    model = { name = "linear" }
    server = { clients_per_round = 2 }
    evaluate = { samples = 3, marginal_every = 10 }
    [[phase]]
    algorithm = "fed_avg"
    rounds = 5
    [[phase]]
    algorithm = "fed_sep"
    rounds = 50
    inference = { name = "laplace" }
  )");
  const auto task = make_task(recipe, {});
  ServerState state = initial_server_state(recipe.server, task->initial_weights());
  const auto marginalises = [&](std::int64_t phase, std::int64_t round, bool last) {
    state.phase = phase;
    state.round = round;
    for (const auto& [name, value] : task->evaluate(state, last)) {
      if (name == "nll_marginal") return true;
    }
    return false;
  };
  EXPECT_FALSE(marginalises(0, 10, true));  // FedAvg has none
  EXPECT_TRUE(marginalises(1, 10, false));
  EXPECT_FALSE(marginalises(1, 11, false));
  EXPECT_TRUE(marginalises(1, 11, true));
  state.global = Message(V(state.global.size()), 0.0f);
  EXPECT_FALSE(marginalises(1, 11, true));  // q is no distribution, so nothing is drawn from it
}

// Hospitals that say only yes or only no, whose own intercepts know it. Were they unknown, every row
// would be near an even chance.
TEST(Evaluation, OfCalibrationRowsKnowsHospitalsOwnIntercepts) {
  constexpr std::size_t kHospitals = 4, kRows = 40;
  Batch train;
  ClientRows clients;
  for (std::size_t k = 0; k < kHospitals; ++k) {
    clients.add("hospital-" + std::to_string(k), kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
      train.dense.push_back(float(i % 3) - 1);
      train.labels.push_back(std::int32_t(k % 2));
    }
  }
  train.size = kHospitals * kRows;
  DatasetInfo info{.name = "hospitals",
                   .features = {1},
                   .target = TargetKind::binary,
                   .outputs = 1,
                   .feature_names = {},
                   .output_names = {}};
  const auto data = without_calibration_rows(
      memory_dataset(std::move(info), {clients, batch_rows(train)}, {clients, batch_rows(train)}),
      0.25);
  const auto model = [] {
    return make_linear(
        {.features = 1, .outputs = 1, .target = TargetKind::binary, .log_site_sd = true});
  };
  const V theta{0.0f, 0.0f, std::log(3.0f)};  // weight, bias, log τ
  const auto nll_of = [&](const Dataset& rows) {
    return value_of(Evaluation(rows, model()).at(theta), "nll");
  };
  EXPECT_LT(nll_of(*data->calibration()), 0.15);
  EXPECT_NEAR(nll_of(*data->calibration()), nll_of(*data), 0.05);
}

}  // namespace
}  // namespace fedep
