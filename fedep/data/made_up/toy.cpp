#include "fedep/data/made_up/toy.h"

#include <cmath>

#include <Eigen/Dense>

#include "fedep/message/check.h"

namespace fedep {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// Cholesky factor of a matrix that must be square, symmetric and positive definite.
MatrixXd checked_cholesky(const char* function, const MatrixXd& psi) {
  const bool square = psi.rows() == psi.cols() && psi.rows() > 0;
  if (!square || !psi.allFinite() || !psi.isApprox(psi.transpose())) {
    fail(function, "psi", "square, symmetric and finite", "not");
  }
  const Eigen::LLT<MatrixXd> llt(psi);
  if (llt.info() != Eigen::Success) fail(function, "psi", "positive definite", "not");
  return llt.matrixL();
}

double chi_squared(int degrees, Stream& stream) {
  double total = 0;
  for (int i = 0; i < degrees; ++i) {
    const double z = stream.normal();
    total += z * z;
  }
  return total;
}

VectorXd standard_normal(Eigen::Index size, Stream& stream) {
  VectorXd z(size);
  for (Eigen::Index i = 0; i < size; ++i) z[i] = stream.normal();
  return z;
}

}  // namespace

ToyPrior paper_toy_prior() {
  // A random positive definite matrix, drawn once by the paper's code and the same in all of its
  // trials.
  MatrixXd psi(2, 2);
  psi << 2.540866, -0.011282, -0.011282, 0.528683;
  return {.psi = psi};
}

ToyPrior toy_prior(int dimension) {
  check_positive("toy_prior", "dimension", dimension);
  return {.psi = MatrixXd::Identity(dimension, dimension), .degrees = dimension + 5};
}

// Bartlett: with A lower triangular, A_ii² ~ chi²(degrees - i) and A_ij ~ N(0, 1) below the
// diagonal, A Aᵀ is Wishart(degrees, I). Its inverse, between the Cholesky factors psi = L Lᵀ, is
// the draw: (L A⁻ᵀ)(L A⁻ᵀ)ᵀ.
MatrixXd sample_inverse_wishart(const MatrixXd& psi, int degrees, Stream& stream) {
  const MatrixXd l = checked_cholesky("sample_inverse_wishart", psi);
  const Eigen::Index d = psi.rows();
  if (degrees < d) {
    fail("sample_inverse_wishart", "degrees", fmt::format("at least the dimension {}", d),
         fmt::format("{}", degrees));
  }
  MatrixXd a = MatrixXd::Zero(d, d);
  for (Eigen::Index i = 0; i < d; ++i) {
    a(i, i) = std::sqrt(chi_squared(degrees - int(i), stream));
    for (Eigen::Index j = 0; j < i; ++j) a(i, j) = stream.normal();
  }
  const MatrixXd root_t = a.triangularView<Eigen::Lower>().solve(MatrixXd(l.transpose()));
  return root_t.transpose() * root_t;
}

std::vector<ToyClient> sample_toy_clients(const ToyPrior& prior, const ToyDraw& draw) {
  check_positive("sample_toy_clients", "scale", prior.scale);
  std::vector<ToyClient> clients;
  clients.reserve(draw.clients);
  for (std::size_t k = 0; k < draw.clients; ++k) {
    Stream stream(
        Address{.seed = draw.seed, .purpose = Purpose::toy, .round = draw.trial, .client = k});
    const MatrixXd sigma = sample_inverse_wishart(prior.psi, prior.degrees, stream);
    const MatrixXd scaled = sigma / prior.scale;
    const VectorXd z = standard_normal(sigma.rows(), stream);
    const VectorXd mean = scaled.llt().matrixL() * z;
    clients.push_back({mean, prior.client_covariance == ClientCovariance::scaled ? scaled : sigma});
  }
  return clients;
}

std::array<ToyClient, 2> illustration_toy_clients() {
  std::array<ToyClient, 2> clients;
  clients[0] = {2 * Eigen::Vector2d(3.5, -5.3), MatrixXd(2, 2)};
  clients[0].covariance << 11, -5.3, -5.3, 3.5;
  clients[1] = {2 * Eigen::Vector2d(0.1, 1.12), MatrixXd(2, 2)};
  clients[1].covariance << 5, 4.9, 4.9, 5.5;
  return clients;
}

}  // namespace fedep
