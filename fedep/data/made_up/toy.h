// The toy task (Guo+23 Sec. 3.1): every client's likelihood is a Gaussian with a full covariance,
// drawn from a normal-inverse-Wishart distribution; the task is to find the mean of their product.
//
//   const auto clients = sample_toy_clients(paper_toy_prior(), {.seed = 1, .trial = 0, .clients =
//   2}); const DenseGaussian<double, 2> p = toy_likelihood<double, 2>(clients[0]);
//
// Draws are made in double and addressed by (seed, trial, client): neither the number of clients
// nor the order in which trials run changes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "fedep/message/dense_gaussian.h"
#include "fedep/random/stream.h"

namespace fedep {

struct ToyClient {
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;
};

// Sigma' ~ InvWishart(degrees, psi),  mu ~ N(0, Sigma'/scale).
// The client is N(mu, Sigma'/scale) as the paper's code has it, or N(mu, Sigma') as the paper's
// text does. The target mean and diagonal EP's path do not feel that common factor; scaled identity
// does.
enum class ClientCovariance { scaled, unscaled };

struct ToyPrior {
  Eigen::MatrixXd psi;
  int degrees = 7;
  double scale = 0.2;
  ClientCovariance client_covariance = ClientCovariance::scaled;
};

ToyPrior paper_toy_prior();
// Any dimension: psi = identity and d + 5 degrees of freedom (the paper's 7 at d = 2).
ToyPrior toy_prior(int dimension);

struct ToyDraw {
  std::uint64_t seed = 1;
  std::uint32_t trial = 0;
  std::size_t clients = 2;
};
std::vector<ToyClient> sample_toy_clients(const ToyPrior& prior, const ToyDraw& draw);

// E[Sigma'] = psi / (degrees - d - 1) where degrees > d + 1.
Eigen::MatrixXd sample_inverse_wishart(const Eigen::MatrixXd& psi, int degrees, Stream& stream);

// The two clients of the paper's Fig. 1.
std::array<ToyClient, 2> illustration_toy_clients();

// The client's p_k, in the precision T in which an experiment runs: mean and covariance are rounded
// first, and everything after that happens in T.
template <class T, int D = Eigen::Dynamic>
DenseGaussian<T, D> toy_likelihood(const ToyClient& client) {
  using Vector = Eigen::Matrix<T, D, 1>;
  using Matrix = Eigen::Matrix<T, D, D>;
  const Vector mean = client.mean.template cast<T>();
  const Matrix covariance = client.covariance.template cast<T>();
  return dense_from_moments<T, D>(mean, covariance);
}

}  // namespace fedep
