#include "test/hospital_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "fedep/inference/method.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/classification.h"
#include "fedep/metric/probability.h"
#include "fedep/metric/ranking.h"
#include "fedep/model/registry.h"
#include "fedep/round/executor_place.h"
#include "fedep/round/run.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"

namespace fedep {
namespace {

class OnlyClient final : public Dataset {
 public:
  OnlyClient(const Dataset& data, std::size_t client)
      : data_(data), client_(client), clients_{data.clients()[client]} {}

  const DatasetInfo& info() const override { return data_.info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    data_.train_batch(client_, examples, augmentation, out);
  }
  std::size_t test_size() const override { return data_.test_size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    data_.test_batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return data_.test_clients(); }
  std::size_t test_client(std::size_t example) const override { return data_.test_client(example); }

 private:
  const Dataset& data_;
  std::size_t client_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
};

}  // namespace

ServerState play_recipe(const Recipe& given, const Dataset& data) {
  Recipe recipe = given;
  recipe.server.clients_per_round =
      std::min(recipe.server.clients_per_round, int(data.clients().size()));
  const Population population = make_population(data.clients());
  const auto model = make_model(recipe.model, data.info());
  const auto phases =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; });
  const auto inference =
      make_local_learning(data, population, recipe, make_model(recipe.model, data.info()));
  const auto sites = make_memory_store();
  const auto executor = make_serial(population, *inference, sites.get());
  HostVector<float> initial(model->size());
  model->initialise(recipe.seed, initial.span());
  ExecutorPlace place(recipe.seed, population, *executor, *sites);
  return play_run({recipe, phases, population, model->layout(), place}, std::move(initial)).state;
}

std::unique_ptr<Dataset> only_client(const Dataset& data, std::size_t client) {
  return std::make_unique<OnlyClient>(data, client);
}

double Agreement::largest_distance() const {
  return *std::max_element(mean_distance.begin(), mean_distance.end());
}
double Agreement::smallest_ratio() const {
  return *std::min_element(deviation_ratio.begin(), deviation_ratio.end());
}
double Agreement::largest_ratio() const {
  return *std::max_element(deviation_ratio.begin(), deviation_ratio.end());
}

Agreement agreement(const Message& q, const PooledPosterior& pooled) {
  const HostVector<float> means = mean(q), variances = variance(q);
  Agreement out;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double deviation = pooled.deviation[Eigen::Index(i)];
    out.mean_distance.push_back(std::abs(double(means[i]) - pooled.mean[Eigen::Index(i)]) /
                                deviation);
    out.deviation_ratio.push_back(std::sqrt(double(variances[i])) / deviation);
  }
  return out;
}

Metrics scores_of_own_models(const Dataset& data, const ModelSettings& settings,
                             const std::vector<HostVector<float>>& weights) {
  std::map<std::string, std::size_t> place;
  for (std::size_t k = 0; k < data.clients().size(); ++k) place[data.clients()[k].first] = k;
  const auto model = make_model(settings, data.info());
  BinaryMetrics metrics;
  Ranking ranking;
  UniformBins bins;
  Batch batch;
  std::vector<float> logit(1);
  for (std::size_t i = 0; i < data.test_size(); ++i) {
    const std::string& client = data.test_clients()[data.test_client(i)];
    data.test_batch(i, i + 1, batch);
    model->logits(weights[place.at(client)].span(), batch, {}, logit);
    const std::vector<double> probability = sigmoid(logit);
    metrics.add(probability, batch.labels);
    ranking.add(probability, batch.labels);
    bins.add(top_class_forecasts(probability, batch.labels));
  }
  return {{"auc", ranking.auc()}, {"nll", metrics.nll()}, {"ece", bins.ece()}};
}

double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  throw std::out_of_range("no metric " + std::string(name));
}

}  // namespace fedep
