#include "fedep/sim/toy/toy_task.h"

#include <array>
#include <cmath>

#include <Eigen/Cholesky>

#include "fedep/data/made_up/toy.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/message/table.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using Dense = DenseGaussian<float>;

constexpr std::array kMethods{
    ToyMethod{.name = "exact",
              .title = "exact",
              .summary = "toy: moments of the tilted distribution, diagonal",
              .projection = Projection::diagonal},
    ToyMethod{.name = "exact_identity",
              .title = "exact, scaled identity",
              .summary = "toy: the same, one variance for all coordinates",
              .projection = Projection::scaled_identity},
};

Projection projection_of(std::string_view name) {
  return find_row("inference method for data toy:", kMethods, name).projection;
}

struct ToyLikelihood {
  ToyClient client;
  Dense density;
};

// A client's "local training" has a closed form: the optimum is the likelihood's mean, posterior
// samples are draws from it, the tilted distribution is a product of Gaussians.
class ToyInference final : public LocalInference {
 public:
  explicit ToyInference(const std::vector<std::pair<std::uint64_t, ToyLikelihood>>& clients)
      : clients_(clients) {}

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const ToyLikelihood& likelihood = find(visit.client.key);
    numbers.steps = 1;
    ClientRun run;
    switch (visit.round.phase.algorithm->needs) {
      case Needs::last_iterate:
        run.last = to_host(likelihood.client.mean);
        break;
      case Needs::samples:
        run.samples = draw(visit, likelihood.client);
        break;
      case Needs::tilted:
        run.tilted = project(exact_tilted(visit.cavity, likelihood.density), visit.cavity,
                             projection_of(visit.round.phase.inference.name));
        break;
    }
    return run;
  }

 private:
  const ToyLikelihood& find(std::uint64_t key) const {
    for (const auto& [client, likelihood] : clients_) {
      if (client == key) return likelihood;
    }
    throw InputError("toy: asked for a client that does not exist");
  }

  static HostVector<float> to_host(const Eigen::VectorXd& x) {
    HostVector<float> out(std::size_t(x.size()));
    for (Eigen::Index i = 0; i < x.size(); ++i) out[std::size_t(i)] = float(x[i]);
    return out;
  }

  std::vector<HostVector<float>> draw(const Visit& visit, const ToyClient& client) const {
    constexpr int kSamplesPerDimension = 10;
    Stream stream({.seed = visit.round.seed,
                   .purpose = Purpose::posterior,
                   .round = std::uint32_t(visit.round.round),
                   .client = visit.client.key});
    const Eigen::MatrixXd root = client.covariance.llt().matrixL();
    std::vector<HostVector<float>> samples;
    for (Eigen::Index i = 0; i < kSamplesPerDimension * client.mean.size(); ++i) {
      Eigen::VectorXd noise(client.mean.size());
      for (double& x : noise) x = stream.normal();
      samples.push_back(to_host(client.mean + root * noise));
    }
    return samples;
  }

  const std::vector<std::pair<std::uint64_t, ToyLikelihood>>& clients_;
};

class ToyTask final : public Task {
 public:
  explicit ToyTask(const Recipe& recipe)
      : layout_{{"theta", {recipe.data.dimension}}}, population_(make(recipe)) {
    check_natural_partition(recipe.data);
    for (const PhaseSettings& phase : recipe.phases) {
      // A missing name is refused where phases are planned, if the algorithm needs one.
      if (phase.inference && !phase.inference->name.empty()) projection_of(phase.inference->name);
    }
  }

  const Population& population() const override { return population_; }
  const Layout& layout() const override { return layout_; }
  HostVector<float> initial_weights() const override { return HostVector<float>(size_of(layout_)); }
  Family family_of(std::string_view inference) const override {
    return fedep::family_of(projection_of(inference));
  }
  std::unique_ptr<LocalInference> make_inference() const override {
    return std::make_unique<ToyInference>(clients_);
  }

  Metrics evaluate(const ServerState& state, bool) override {
    const HostVector<float> estimate = point_estimate(state);
    double squares = 0;
    for (std::size_t i = 0; i < estimate.size(); ++i) {
      const double gap = double(estimate[i]) - exact_mean_[Eigen::Index(i)];
      squares += gap * gap;
    }
    return {{"distance", std::sqrt(squares)}};
  }

 private:
  Population make(const Recipe& recipe) {
    const std::vector<ToyClient> drawn = sample_toy_clients(
        toy_prior(recipe.data.dimension), {.seed = recipe.data.partition_seed.value_or(recipe.seed),
                                           .trial = 0,
                                           .clients = std::size_t(recipe.data.clients)});
    std::vector<std::pair<std::string, std::size_t>> ids;
    const Eigen::Index d = recipe.data.dimension;
    DenseGaussian<double> posterior{Eigen::VectorXd::Zero(d), Eigen::MatrixXd::Zero(d, d)};
    if (recipe.server.prior) {
      const double precision = recipe.server.prior->precision;
      posterior.eta.setConstant(precision * recipe.server.prior->mean);
      posterior.lambda.diagonal().setConstant(precision);
    }
    for (const ToyClient& client : drawn) {
      ids.emplace_back("client-" + std::to_string(ids.size()), 1);
      clients_.emplace_back(client_key(ids.back().first),
                            ToyLikelihood{client, toy_likelihood<float>(client)});
      posterior = product(posterior, toy_likelihood<double>(client));
    }
    exact_mean_ = mean(posterior);
    return make_population(ids);
  }

  Layout layout_;
  std::vector<std::pair<std::uint64_t, ToyLikelihood>> clients_;
  Eigen::VectorXd exact_mean_;
  Population population_;
};

}  // namespace

std::span<const ToyMethod> toy_methods() { return kMethods; }

std::unique_ptr<Task> make_toy_task(const Recipe& recipe) {
  if (!recipe.priors.empty()) {
    throw InputError("[[prior]]: data must be a table, whose coefficients have names, but are toy");
  }
  return std::make_unique<ToyTask>(recipe);
}

}  // namespace fedep
