// One-dimensional integrals that a row of a generalised linear model asks for, since it enters through
// the one number f = x·θ. All sums are in logs, so that nothing under- or overflows.
//
//   const RowMoments tilted = tilted_row(rows.likelihood(i), mean, variance);   // of N(f; …) p(y | f)
//
// 32 nodes of Gauss and Hermite lie around the mode of the integrand, scaled by its curvature. Where the
// normal is wider than the likelihood's bend, which so few nodes would step over, equal steps out to where
// nothing is left (the trapezoidal rule, whose error for such integrands falls exponentially) take their
// place: both are good to about 1e-9.
#pragma once

#include "fedep/inference/rows/glm_rows.h"

namespace fedep {

// Of N(f; mean, variance) p(y | f), normalised.
struct RowMoments {
  double mean = 0;
  double variance = 0;
  double log_mass = 0;  // log ∫ N(f) p(y | f) df
};

// variance > 0.
RowMoments tilted_row(const RowLikelihood& row, double mean, double variance);

// Averages over f ~ N(mean, variance) of log p(y | f), its slope and its curvature.
RowDensity expected_density(const RowLikelihood& row, double mean, double variance);

}  // namespace fedep
