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

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"

namespace fedep {

// Sweeps until no row and no coefficient moves by 1e-6 deviations. A row whose own cavity is improper
// waits for the next sweep. Throws RunError naming client and row after 100 sweeps, InputError where
// cavity times likelihood is no distribution.
GlmTilted quadrature_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows);

}  // namespace fedep
