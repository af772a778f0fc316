// (V) with a full precision: the Gaussian q nearest to the tilted distribution in KL(q ‖ tilted), by steps
// along the natural gradient. In natural coordinates a step moves q toward
//
//   Λ = Λ_cavity + Σ_i -E[l_i''] x_i x_iᵀ,     η = η_cavity + Σ_i (E[l_i'] - E[l_i''] m_i) x_i,
//
// where l_i is row i's log likelihood as a function of f_i = x_i·θ and E averages over q's f_i, whose mean
// is m_i: one-dimensional integrals (row_quadrature.h) take the place of draws. A step that would lose
// evidence is halved.
#pragma once

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"

namespace fedep {

// Steps until a whole one would be shorter than 1e-6 deviations of q. Throws RunError naming the client after 500 steps,
// InputError where cavity times likelihood is no distribution.
GlmTilted ngvi_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows);

// E_q[log cavity × likelihood] + entropy of q, up to a constant: what ngvi_tilted() makes largest.
double evidence_bound(const DenseGaussian<double>& cavity, const GlmRows& rows, const GlmTilted& q);

}  // namespace fedep
