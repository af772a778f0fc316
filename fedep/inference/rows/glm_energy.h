// -log of cavity times likelihood of a client's rows, up to a constant:
//
//   ½ θᵀ Λ θ - ηᵀ θ - Σ_i log p(y_i | x_i·θ)
#pragma once

#include <string_view>
#include <vector>

#include <Eigen/Core>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"
#include "fedep/inference/rows/newton.h"
#include "fedep/message/dense_gaussian.h"

namespace fedep {

// Every row's, and x·θ of every row, without offsets.
std::vector<RowLikelihood> likelihoods(const GlmRows& rows);
Eigen::VectorXd linear_predictors(const GlmRows& rows, const Eigen::VectorXd& theta);
// Σ_i weights_i x_i
Eigen::VectorXd weighted_rows(const GlmRows& rows, const Eigen::VectorXd& weights);

class GlmEnergy final : public Energy {
 public:
  // What is referred to must outlive this.
  GlmEnergy(const DenseGaussian<double>& cavity, const GlmRows& rows);

  double value(const Eigen::VectorXd& theta) const override;
  Eigen::VectorXd gradient(const Eigen::VectorXd& theta) const override;
  Eigen::MatrixXd hessian(const Eigen::VectorXd& theta) const override;

 private:
  const DenseGaussian<double>& cavity_;
  const GlmRows& rows_;
  std::vector<RowLikelihood> likelihoods_;
};

// Where Newton's method begins: the cavity's mean or zero, whichever is more likely.
Eigen::VectorXd start_of(const DenseGaussian<double>& cavity, const Energy& energy);

// Mean and covariance of natural coordinates whose lower triangle is filled. Throws InputError naming
// `what` where they are no distribution.
GlmTilted tilted_of(std::string_view what, DenseGaussian<double> q);

// Throws InputError where rows cannot be, or cavity and rows differ in size.
void check_tilted_arguments(std::string_view what, const DenseGaussian<double>& cavity,
                            const GlmRows& rows);

}  // namespace fedep
