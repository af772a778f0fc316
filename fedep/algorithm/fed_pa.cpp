#include "fedep/algorithm/fed_pa.h"

#include <cmath>

#include <Eigen/Dense>

namespace fedep {

std::vector<double> posterior_weights(std::span<const double> products, double rho) {
  const auto l = Eigen::Index(std::llround(std::sqrt(double(products.size()))));
  check_same_size("posterior_weights", "products", std::size_t(l * l), products.size());
  const Eigen::MatrixXd d = Eigen::Map<const Eigen::MatrixXd>(products.data(), l, l);
  const Eigen::MatrixXd centre =
      Eigen::MatrixXd::Identity(l, l) - Eigen::MatrixXd::Constant(l, l, 1.0 / double(l));
  const Eigen::MatrixXd of_x = centre * d * centre;            // XᵀX
  const Eigen::VectorXd with_w = centre * d.rowwise().mean();  // Xᵀw
  const Eigen::MatrixXd system = Eigen::MatrixXd::Identity(l, l) + rho * of_x;
  const Eigen::VectorXd y = system.llt().solve(rho * with_w);
  const Eigen::VectorXd weights =
      (1 + double(l - 1) * rho) * (Eigen::VectorXd::Constant(l, 1.0 / double(l)) - centre * y);
  return {weights.begin(), weights.end()};
}

}  // namespace fedep
