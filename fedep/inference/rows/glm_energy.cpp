#include "fedep/inference/rows/glm_energy.h"

#include <cmath>
#include <utility>
#include <vector>

#include <cblas-openblas.h>

#include "fedep/inference/rows/symmetric_matrix.h"
#include "fedep/message/check.h"

namespace fedep {

std::vector<RowLikelihood> likelihoods(const GlmRows& rows) {
  std::vector<RowLikelihood> all;
  for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(rows.likelihood(i));
  return all;
}

Eigen::VectorXd linear_predictors(const GlmRows& rows, const Eigen::VectorXd& theta) {
  Eigen::VectorXd f = Eigen::VectorXd::Zero(Eigen::Index(rows.size()));
  if (rows.size() == 0) return f;
  const int d = int(rows.columns);
  cblas_dgemv(CblasColMajor, CblasTrans, d, int(rows.size()), 1.0, rows.x.data(), d, theta.data(),
              1, 0.0, f.data(), 1);
  return f;
}

Eigen::VectorXd weighted_rows(const GlmRows& rows, const Eigen::VectorXd& weights) {
  const int d = int(rows.columns);
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(d);
  if (rows.size() == 0) return sum;
  cblas_dgemv(CblasColMajor, CblasNoTrans, d, int(rows.size()), 1.0, rows.x.data(), d,
              weights.data(), 1, 0.0, sum.data(), 1);
  return sum;
}

GlmEnergy::GlmEnergy(const DenseGaussian<double>& cavity, const GlmRows& rows)
    : cavity_(cavity), rows_(rows), likelihoods_(likelihoods(rows)) {}

double GlmEnergy::value(const Eigen::VectorXd& theta) const {
  const Eigen::VectorXd f = linear_predictors(rows_, theta);
  double likelihood = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    likelihood += likelihoods_[i].log_density(f[Eigen::Index(i)]);
  }
  const Eigen::VectorXd pull = cavity_.lambda.selfadjointView<Eigen::Lower>() * theta;
  return 0.5 * theta.dot(pull) - cavity_.eta.dot(theta) - likelihood;
}

Eigen::VectorXd GlmEnergy::gradient(const Eigen::VectorXd& theta) const {
  Eigen::VectorXd f = linear_predictors(rows_, theta);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    double& one = f[Eigen::Index(i)];
    one = likelihoods_[i].at(one).slope;
  }
  const Eigen::VectorXd pull = cavity_.lambda.selfadjointView<Eigen::Lower>() * theta;
  return pull - cavity_.eta - weighted_rows(rows_, f);
}

Eigen::MatrixXd GlmEnergy::hessian(const Eigen::VectorXd& theta) const {
  const Eigen::VectorXd f = linear_predictors(rows_, theta);
  std::vector<double> weights(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    weights[i] = -likelihoods_[i].at(f[Eigen::Index(i)]).curvature;
  }
  Eigen::MatrixXd sum = cavity_.lambda;
  add_gram(rows_.x, weights, sum);
  return sum;
}

Eigen::VectorXd start_of(const DenseGaussian<double>& cavity, const Energy& energy) {
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(cavity.size());
  Eigen::MatrixXd factor = cavity.lambda;
  if (!factorise(factor)) return zero;
  const Eigen::VectorXd mean = solve(factor, cavity.eta);
  return energy.value(mean) < energy.value(zero) ? mean : zero;
}

GlmTilted tilted_of(std::string_view what, DenseGaussian<double> q) {
  Eigen::MatrixXd factor = q.lambda;
  if (!q.eta.allFinite() || !factorise(factor)) {
    fail(what, "cavity times likelihood", "positive definite and finite", "not");
  }
  mirror(q.lambda);
  GlmTilted out{.q = std::move(q), .mean = {}, .covariance = inverse(factor)};
  out.mean = solve(factor, out.q.eta);
  return out;
}

void check_tilted_arguments(std::string_view what, const DenseGaussian<double>& cavity,
                            const GlmRows& rows) {
  check_glm_rows(rows);
  check_same_size(what, "cavity", rows.columns, std::size_t(cavity.size()));
  check_same_size(what, "cavity's precision", rows.columns * rows.columns,
                  std::size_t(cavity.lambda.size()));
}

}  // namespace fedep
