// 06: a way of inference of one's own. A client is asked for the tilted distribution, its likelihood
// times the cavity; how it finds that is its own business. Here the likelihood is linear regression,
// so the tilted distribution is known in closed form, and the rounds end at the least squares
// solution of all rows together, which nobody ever had.
#include <cmath>

#include <fmt/format.h>
#include <Eigen/Dense>

#include "fedep/config/resolve.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/inference/exact.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/place/serial.h"

using namespace fedep;

constexpr int kWeights = 5;
using Likelihood = DenseGaussian<float>;

// A client's rows as a Gaussian in the weights: precision XᵀX, eta Xᵀy (unit noise).
Likelihood likelihood_of(const Dataset& data, std::size_t client) {
  std::vector<std::uint32_t> all(data.clients()[client].second);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint32_t(i);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  const auto rows = Eigen::Index(batch.size);
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Rows> x(batch.dense.data(), rows, kWeights);
  const Eigen::Map<const Eigen::VectorXf> y(batch.reals.data(), rows);
  return {x.transpose() * y, x.transpose() * x};
}

class ExactRegression final : public LocalInference {
 public:
  explicit ExactRegression(const Dataset& data) : data_(data) {}

  ClientRun infer(const Visit& visit, VisitNumbers&) override {
    std::size_t client = 0;
    while (data_.clients()[client].first != visit.client.id) ++client;
    ClientRun run;
    run.tilted = project_diagonal(exact_tilted(visit.cavity, likelihood_of(data_, client)));
    return run;
  }

 private:
  const Dataset& data_;
};

int main() {
  Recipe plan;
  plan.data = {.name = "regression", .clients = 6, .dimension = kWeights, .examples = 40};
  plan.server.clients_per_round = 6;
  plan.server.prior = PriorSettings{.mean = 0, .precision = 1};
  plan.server.damping = {.rule = DampingRule::constant, .constant = 0.5};
  plan.phases.push_back({.algorithm = "fed_ep", .rounds = 40, .factors = FactorStart::flat});
  plan.phases[0].inference = InferenceSettings{.name = "exact_regression"};
  const Recipe recipe = resolved(plan);
  const auto data = open_regression(recipe.data, recipe.seed);
  const Population population = make_population(data->clients());
  ExactRegression inference(*data);
  const auto factors = make_memory_store();
  const auto executor = make_serial(population, inference, factors.get());
  const Phase phase = plan_phases(recipe, [](std::string_view) { return Family::diagonal; })[0];

  Likelihood pooled{Eigen::VectorXf::Zero(kWeights),
                    Eigen::MatrixXf::Identity(kWeights, kWeights)};  // the prior
  for (std::size_t k = 0; k < population.size(); ++k) {
    pooled = product(pooled, likelihood_of(*data, k));
  }
  const Eigen::VectorXf exact = mean(pooled);
  ServerState state = begin_phase(initial_server_state(recipe.server, HostVector<float>(kWeights)),
                                  phase, 0, population);
  float error = 0;
  while (state.round < phase.rounds) {
    play_round(state, phase, recipe.seed, population, *executor);
    const HostVector<float> q = mean(state.global);
    error = (Eigen::Map<const Eigen::VectorXf>(q.span().data(), kWeights) - exact).norm();
    if (state.round % 10 == 0)
      fmt::print("round {}: {:.1e} from the pooled answer\n", state.round, error);
  }
  return error < 1e-4f ? 0 : 1;
}
