#include "fedep/sim/toy/toy_experiment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// Small and fixed in size: a trial allocates for its messages only.
template <class T>
using Point = Eigen::Matrix<T, 2, 1>;
template <class T>
using Likelihoods = std::vector<DenseGaussian<T, 2>>;

template <class T>
Likelihoods<T> likelihoods_of(const std::vector<ToyClient>& clients) {
  Likelihoods<T> out;
  for (const ToyClient& client : clients) out.push_back(toy_likelihood<T, 2>(client));
  return out;
}

template <class T>
Point<T> exact_mean(const Likelihoods<T>& clients) {
  DenseGaussian<T, 2> global = clients.front();
  for (std::size_t k = 1; k < clients.size(); ++k) global = product(global, clients[k]);
  return mean(global);
}

template <class T>
Point<T> average_mean(const std::vector<ToyClient>& clients) {
  Point<T> total = Point<T>::Zero();
  for (const ToyClient& client : clients) total += client.mean.template cast<T>();
  return total / T(clients.size());
}

template <class T>
Point<T> mean_point(const EpState<T>& state) {
  const HostVector<T> mu = mean(state.global);
  return {mu[0], mu[1]};
}

// Undamped EP from flat factors; the distance of its mean to the target after each step. Once a
// step changes no bit of the state no later one will, so the rest is filled in.
template <class T>
std::vector<double> ep_distances(const Likelihoods<T>& clients, const Point<T>& target,
                                 Projection projection, int steps) {
  std::vector<double> distances;
  distances.reserve(std::size_t(steps));
  auto state = flat_ep_state<T>(clients.size(), 2, projection);
  for (int step = 0; step < steps; ++step) {
    auto next = parallel_ep_step(clients, state, projection);
    if (next == state) break;
    state = std::move(next);
    distances.push_back(double((mean_point(state) - target).norm()));
  }
  const double last = distances.back();
  distances.resize(std::size_t(steps), last);
  return distances;
}

class DistanceSummary {
 public:
  explicit DistanceSummary(int steps) : by_round_(std::size_t(steps), 0.0) {}

  void add(const std::vector<double>& by_round) {
    for (std::size_t i = 0; i < by_round.size(); ++i) by_round_[i] += by_round[i];
    final_.push_back(by_round.back());
  }
  void add_one_shot(double distance) {
    for (double& total : by_round_) total += distance;
    final_.push_back(distance);
  }

  ToyDistance summary() const {
    const double n = double(final_.size());
    double mean = 0;
    for (const double x : final_) mean += x / n;
    double variance = 0;
    for (const double x : final_) variance += (x - mean) * (x - mean) / n;
    std::vector<double> by_round = by_round_;
    for (double& total : by_round) total /= n;
    return {mean, std::sqrt(variance), median(), std::move(by_round)};
  }

 private:
  double median() const {
    std::vector<double> sorted = final_;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  std::vector<double> by_round_;  // summed over trials
  std::vector<double> final_;     // one a trial
};

template <class T>
ToyResult run_in(const ToySettings& settings) {
  DistanceSummary fed_avg(settings.steps), fed_pa(settings.steps), fed_ep(settings.steps),
      fed_ep_identity(settings.steps);
  for (int trial = 0; trial < settings.trials; ++trial) {
    const auto clients = sample_toy_clients(
        settings.prior, {.seed = settings.seed, .trial = std::uint32_t(trial), .clients = 2});
    const Likelihoods<T> likelihoods = likelihoods_of<T>(clients);
    const Point<T> target = exact_mean(likelihoods);
    const auto diagonal = ep_distances(likelihoods, target, Projection::diagonal, settings.steps);
    fed_avg.add_one_shot(double((average_mean<T>(clients) - target).norm()));
    fed_pa.add_one_shot(diagonal.front());
    fed_ep.add(diagonal);
    fed_ep_identity.add(
        ep_distances(likelihoods, target, Projection::scaled_identity, settings.steps));
  }
  return {fed_avg.summary(), fed_pa.summary(), fed_ep.summary(), fed_ep_identity.summary()};
}

}  // namespace

ToyResult run_toy_experiment(const ToySettings& settings) {
  check_positive("toy", "trials", settings.trials);
  check_positive("toy", "steps", settings.steps);
  check_same_size("toy", "prior's psi", 4, std::size_t(settings.prior.psi.size()));
  return settings.float32 ? run_in<float>(settings) : run_in<double>(settings);
}

ToyIllustration illustrate_toy(int steps) {
  check_positive("illustrate_toy", "steps", steps);
  const auto pair = illustration_toy_clients();
  const std::vector<ToyClient> clients(pair.begin(), pair.end());
  const auto likelihoods = likelihoods_of<double>(clients);
  ToyIllustration out{pair, exact_mean(likelihoods), average_mean<double>(clients), {}, {}};
  auto state = flat_ep_state<double>(clients.size(), 2, Projection::diagonal);
  for (int step = 0; step < steps; ++step) {
    state = parallel_ep_step(likelihoods, state, Projection::diagonal);
    out.path.push_back(mean_point(state));
  }
  out.fed_pa = out.path.front();
  return out;
}

}  // namespace fedep
