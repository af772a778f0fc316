// (L) with a full precision: the tilted distribution's mode, by Newton's method, and its whole curvature
// there. Exact for numbers with normal noise.
//
//   Λ_tilted = Λ_cavity + Σ_i -(log p(y_i | f_i))'' x_i x_iᵀ,     η_tilted = Λ_tilted mode
//
// Classes have a weight per column and class, in the order of a linear model: θ[j classes + c].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"

namespace fedep {

// Throws InputError where cavity times likelihood is no distribution, RunError where no mode is found.
GlmTilted laplace_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows);

// Rows whose outcome is one of several classes, by softmax.
struct ClassRows {
  std::string client = {};
  std::size_t columns = 0;  // the intercept's, 1 in every row, is the last one
  std::size_t classes = 0;
  std::vector<double> x = {};             // [n, columns]
  std::vector<std::int32_t> labels = {};  // [n], each below `classes`

  std::size_t size() const { return labels.size(); }
};

GlmTilted laplace_tilted(const DenseGaussian<double>& cavity, const ClassRows& rows);

// -log likelihood of all rows.
double loss_of(const ClassRows& rows, const Eigen::VectorXd& theta);

// What rows say by themselves at some weights: the Hessian of -log likelihood there, both triangles. What
// a client sends in a last round of curvature.
Eigen::MatrixXd likelihood_hessian(const GlmRows& rows, const Eigen::VectorXd& theta);
Eigen::MatrixXd likelihood_hessian(const ClassRows& rows, const Eigen::VectorXd& theta);
// And its gradient.
Eigen::VectorXd likelihood_gradient(const GlmRows& rows, const Eigen::VectorXd& theta);
Eigen::VectorXd likelihood_gradient(const ClassRows& rows, const Eigen::VectorXd& theta);

}  // namespace fedep
