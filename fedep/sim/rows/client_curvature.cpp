#include "fedep/sim/rows/client_curvature.h"

#include <vector>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/message/packed.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

// A precision of `weight_decay` for every row, around zero.
template <class Rows>
CurvaturePart part_of(const Rows& rows, double weight_decay, const Eigen::VectorXd& theta) {
  const double decay = weight_decay * double(rows.size());
  Eigen::VectorXd gradient = likelihood_gradient(rows, theta) + decay * theta;
  Eigen::MatrixXd hessian = likelihood_hessian(rows, theta);
  hessian.diagonal().array() += decay;
  CurvaturePart out{{gradient.begin(), gradient.end()}, {}};
  out.hessian.reserve(packed_size(std::size_t(theta.size())));
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) out.hessian.push_back(hessian(i, j));
  }
  return out;
}

}  // namespace

CurvaturePart curvature_of(const Dataset& data, std::size_t client, const Likelihood& likelihood,
                           double weight_decay, std::span<const float> theta) {
  Eigen::VectorXd at(Eigen::Index(theta.size()));
  for (std::size_t i = 0; i < theta.size(); ++i) at[Eigen::Index(i)] = double(theta[i]);
  if (likelihood.target == TargetKind::label) {
    return part_of(class_rows_of(data, client), weight_decay, at);
  }
  return part_of(rows_of(data, client, likelihood), weight_decay, at);
}

}  // namespace fedep
