#include "fedep/algorithm/fed_pa.h"

#include <cmath>

#include <Eigen/Dense>

namespace fedep {

std::vector<double> posterior_weights(std::span<const double> products, double rho) {
  const auto l = Eigen::Index(std::llround(std::sqrt(double(products.size()))));
  check_same_size("posterior_weights", "products", std::size_t(l * l), products.size());
  const Eigen::MatrixXd d = Eigen::Map<const Eigen::MatrixXd>(products.data(), l, l);
  const double each = 1.0 / double(l);
  // w and the columns of X, in terms of the moves: the first is in w alone.
  Eigen::VectorXd w = Eigen::VectorXd::Constant(l, each);
  w[0] = 1;
  Eigen::MatrixXd x = Eigen::MatrixXd::Identity(l, l) - Eigen::MatrixXd::Constant(l, l, each);
  x.row(0).setZero();
  const Eigen::MatrixXd system = Eigen::MatrixXd::Identity(l, l) + rho * x.transpose() * d * x;
  const Eigen::VectorXd y = system.llt().solve(rho * x.transpose() * d * w);
  const Eigen::VectorXd weights = (1 + double(l - 1) * rho) * (w - x * y);
  return {weights.begin(), weights.end()};
}

}  // namespace fedep
