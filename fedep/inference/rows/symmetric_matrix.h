// Symmetric matrices in double precision over BLAS, on the calling thread alone: what full covariances
// need. Functions read and write the lower triangle only; mirror() fills the upper one.
//
//   Eigen::MatrixXd a = cavity.lambda;
//   add_gram(rows.x, weights, a);                 // a += Xᵀ diag(weights) X
//   if (!factorise(a)) …                          // a = L, a Lᵀ of which the matrix was
//   const Eigen::VectorXd mean = solve(a, eta);
//   const Eigen::MatrixXd covariance = inverse(a);
#pragma once

#include <span>

#include <Eigen/Core>

namespace fedep {

// a += Σ_i weights_i x_i x_iᵀ, where x holds rows as long as `a` is wide, one after another. Weights
// may be negative.
void add_gram(std::span<const double> x, std::span<const double> weights, Eigen::MatrixXd& a);

// a becomes its Cholesky factor L. False where a is not positive definite or not finite; it is then
// of no use.
[[nodiscard]] bool factorise(Eigen::MatrixXd& a);

// Of a matrix whose factor this is. inverse() has both triangles.
Eigen::VectorXd solve(const Eigen::MatrixXd& factor, const Eigen::VectorXd& b);
Eigen::MatrixXd inverse(const Eigen::MatrixXd& factor);
double log_determinant(const Eigen::MatrixXd& factor);

// The upper triangle becomes the lower one.
void mirror(Eigen::MatrixXd& a);

}  // namespace fedep
