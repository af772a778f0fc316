// 02: why messages go round. Two clients' likelihoods are correlated Gaussians; the server may keep
// only means and variances. Averaging the clients is off, and stays off; expectation propagation
// comes closer with every round.
#include <fmt/format.h>

#include "fedep/sim/toy/toy_experiment.h"

int main() {
  using namespace fedep;
  std::vector<DenseGaussian<double, 2>> clients;
  for (const ToyClient& client : illustration_toy_clients()) {
    clients.push_back(toy_likelihood<double, 2>(client));
  }
  const Eigen::Vector2d exact = mean(product(clients[0], clients[1]));
  const Eigen::Vector2d average = (mean(clients[0]) + mean(clients[1])) / 2;
  fmt::print("average of the clients: {:.4f} from the answer\n", (average - exact).norm());

  EpState<double> state = flat_ep_state<double>(clients.size(), 2, Projection::diagonal);
  double distance = 0;
  for (int round = 1; round <= 30; ++round) {
    state = parallel_ep_step(clients, state, Projection::diagonal);
    const HostVector<double> q = mean(state.global);
    distance = (Eigen::Vector2d(q[0], q[1]) - exact).norm();
    if (round == 1 || round % 10 == 0) fmt::print("round {:2}: {:.4f}\n", round, distance);
  }
  return distance < 0.05 * (average - exact).norm() ? 0 : 1;
}
