// The tilted distribution of a client whose rows are a generalised linear model's (glm_rows.h): cavity
// times likelihood, as a Gaussian with a full precision. Three ways to it, all pure functions in double:
//
//   const GlmTilted q = quadrature_tilted(cavity, rows);               // quadrature.h: its moments
//   const GlmTilted q = laplace_tilted(cavity, rows);                  // full_laplace.h: its mode and curvature
//   const GlmTilted q = hmc_tilted(cavity, rows, settings, address);   // hmc.h: moments of draws
#pragma once

#include <Eigen/Core>

#include "fedep/message/dense_gaussian.h"

namespace fedep {

struct GlmTilted {
  DenseGaussian<double> q;  // natural coordinates: eta, lambda
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;
  int sweeps = 0;  // over the rows, until nothing moved: EP's sweeps, Newton's steps, HMC's draws
};

}  // namespace fedep
