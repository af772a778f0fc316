// (Q) Expectation propagation over a client's own rows: mean and covariance of the tilted distribution,
// not its mode, without randomness and with nothing to tune. Row i's factor is a Gaussian of the one
// number f_i = x_i·θ,
//
//   q(θ) = cavity(θ) Π_i exp(ν_i f_i - ½ τ_i f_i²),
//
// and is chosen so that q has the moments of q without it times p(y_i | f_i), which are one-dimensional
// integrals (row_quadrature.h). Factors begin as the curvature at the tilted mode (full_laplace.h), so
// that few sweeps are left.
//
//   const GlmTilted q = quadrature_tilted(cavity, rows);
//
// Cost: sweeps × 3 n d² multiplications in products of matrices, and n integrals of 32 nodes.
#pragma once

#include <vector>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"

namespace fedep {

// Sweeps until no row and no coefficient moves by 1e-6 deviations. A row whose own cavity is improper
// waits for the next sweep. Throws RunError naming client and row after 100 sweeps, InputError where
// cavity times likelihood is no distribution.
GlmTilted quadrature_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows);

// Factors of rows, where EP of much the same cavity and rows may begin.
struct RowSites {
  std::vector<double> tau = {}, nu = {};  // [n]; empty: the curvature at the mode
};

struct EvidentTilted : GlmTilted {
  // log ∫ exp(ηᵀθ - ½ θᵀΛθ) Π_i p(y_i | f_i) dθ, the cavity's (η, Λ) without a constant of its own: EP's
  // value, the closed form for numbers. EP is stationary in its factors where they have converged, so that this is far more exact than they are.
  double log_evidence = 0;
};

// The same with its evidence, from `sites` on, which are the new factors afterwards.
EvidentTilted quadrature_with_evidence(const DenseGaussian<double>& cavity, const GlmRows& rows,
                                       RowSites& sites);

// log ∫ exp(ηᵀθ - ½ θᵀΛθ) dθ of a proper q, whose mean is this.
double log_mass(const DenseGaussian<double>& q, const Eigen::VectorXd& mean);

}  // namespace fedep
