// Hamiltonian Monte Carlo of the tilted distribution, in the coordinates in which its curvature at the
// mode is the identity. The step's length is learned by dual averaging (Hoffman+14) while the chain warms
// up; a trajectory is about a quarter turn, its length drawn, so that no coordinate comes full circle.
//
//   const HmcTilted q = hmc_tilted(cavity, rows, {}, {.seed = 1, .purpose = Purpose::langevin,
//                                                     .round = 7, .client = client_key("ward-3")});
//
// An inverse of a sample covariance is too large on average; with draws of d numbers whose covariance is
// as good as that of n independent ones,
//
//   Λ_tilted = (n - d - 2) / (n - 1) S⁻¹,     η_tilted = Λ_tilted × mean of the draws
//
// are unbiased where the tilted distribution is Gaussian.
#pragma once

#include <span>
#include <vector>

#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"
#include "fedep/random/stream.h"

namespace fedep {

struct HmcSettings {
  int effective_per_weight = 20;  // draws that there are at least, for every weight
  int most_per_weight = 1000;  // draws in all, for every weight: beyond that the answer is refused
  int warmup = 300;
};

struct HmcTilted : GlmTilted {  // sweeps: draws after the warm-up
  double effective = 0;         // of the worst weight or square of one; at most the draws
  double acceptance = 0;
};

// Throws RunError naming the client where draws stay too dependent, InputError where cavity times
// likelihood is no distribution.
HmcTilted hmc_tilted(const DenseGaussian<double>& cavity, const GlmRows& rows,
                     const HmcSettings& settings, const Address& address);

// How many independent draws say as much about a mean as these, by Geyer's initial positive sequence, of
// correlations averaged over the chains; at most as many as one has.
double effective_draws(std::span<const std::vector<double>> chains);
double effective_draws(const std::vector<double>& chain);

}  // namespace fedep
