// The lowest point of a smooth convex function by Newton's method, each step halved until the function
// falls.
//
//   const EnergyMode mode = find_mode("laplace of client ward-3", energy, start);
//   mode.theta, mode.factor        // and the Cholesky factor of the Hessian there
#pragma once

#include <string_view>

#include <Eigen/Core>

namespace fedep {

// -log of a density up to a constant.
class Energy {
 public:
  virtual ~Energy() = default;
  virtual double value(const Eigen::VectorXd& theta) const = 0;
  virtual Eigen::VectorXd gradient(const Eigen::VectorXd& theta) const = 0;
  virtual Eigen::MatrixXd hessian(const Eigen::VectorXd& theta) const = 0;  // its lower triangle
};

struct EnergyMode {
  Eigen::VectorXd theta;
  Eigen::MatrixXd hessian;  // there; the lower triangle
  Eigen::MatrixXd factor;   // Cholesky's, of the Hessian
  int steps = 0;
};

// Until a step is below 1e-9 deviations (of the Gaussian with this Hessian). Throws InputError naming
// `what` where the Hessian is not positive definite, RunError after 200 steps.
EnergyMode find_mode(std::string_view what, const Energy& energy, Eigen::VectorXd start);

}  // namespace fedep
