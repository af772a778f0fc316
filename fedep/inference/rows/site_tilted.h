// (Q) where a client has an intercept of its own, or noise is not known: the tilted distribution of what
// clients share,
//
//   θ = (β, m, l = log τ, s = log σ),     f = xβ + b,   b = m + τ u,   u ~ N(0, 1),
//
// l only with an intercept of one's own, s only with estimated noise. Given h = (l, s) the cavity of (β, m, u)
// is Gaussian and rows are EP's (quadrature.h), exact for numbers. So h is gone through on a grid; a node
// counts by EP's evidence there times the cavity's density, and the mixture's mean and covariance over θ are
// what comes back. u, and with it b, is integrated out in every node.
//
//   const SiteTilted q = site_tilted(cavity, rows, {.intercept = true});
//
// The grid follows what it integrates: its centre and spacing are the mode and curvature of the nodes'
// weights, which 10,000 rows make a hundred times narrower than a cavity; it ends where weights have fallen by e^-13.
// Equal steps (the trapezoidal rule) are exact to many digits for smooth weights. Nothing is drawn.
#pragma once

#include <cstddef>
#include <optional>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"

namespace fedep {

// Shared parameters behind a linear model's own, in this order.
struct SiteParts {
  bool intercept = false;  // log τ
  bool noise = false;      // log σ, of numbers

  std::size_t size() const { return std::size_t(intercept) + std::size_t(noise); }
};

struct SiteGrid {
  double spacing = 0.75;  // in deviations of the mode's curvature
  double drop = 13;       // nodes whose log weight is further below the largest are left out
};

struct SiteTilted : GlmTilted {  // sweeps: over the rows, of all nodes
  std::size_t nodes = 0;
};

// `cavity`: of θ, whose first part are the rows' columns; the last of these is 1 in every row. `start`: of h,
// where the search for the mode begins; none: the cavity's mean. rows.noise is not read where it is
// estimated. Throws InputError where cavity times likelihood is no distribution, RunError as
// quadrature_tilted() does.
SiteTilted site_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows,
                       const SiteParts& parts, const std::optional<Eigen::VectorXd>& start = {},
                       const SiteGrid& grid = {});

}  // namespace fedep
