// Whether clients' steps bear the Gaussian that stands for the others (docs/stability.md).
//
//   const double own = least_curvature(recipe.model, data.info());
//   for (const StrongPull& p : strong_pulls(recipe, phases, population, own)) warn(to_text(p));
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/server_state.h"

namespace fedep {

// A phase that begins with clients whose steps diverge whatever their data are.
struct StrongPull {
  std::size_t phase = 0;
  std::string algorithm;
  std::size_t clients = 0;   // of whom this is true
  std::string client;        // the one that is pulled most,
  std::size_t examples = 0;  // with so many,
  double pull = 0;           // curvature Λ_j / N_k of its cavity,
  double own = 0;            // and at least so much of its own loss, where that is known;
  double most = 0;           // what its optimizer bears, 2 (1 + μ) / lr
};

// What the loss of every client has for curvature at least, in one direction: 1/σ² of a linear
// model's intercept where the outcome is a number, whatever the columns are. 0 where nothing is known.
double least_curvature(const ModelSettings& model, const DatasetInfo& data);

// Of clients that learn by steps from examples. At most one of each phase; `own` is least_curvature(), and
// the largest precision counts where coefficients have priors of their own. Only what a phase begins with is
// known here: Laplace and NGVI go on to precisions of their own.
std::vector<StrongPull> strong_pulls(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Population& population, double own = 0,
                                     std::span<const CoordinatePrior> priors = {});
std::string to_text(const StrongPull& pull);

}  // namespace fedep
