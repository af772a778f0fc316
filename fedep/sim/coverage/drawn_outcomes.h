// Data with the rows that others have and outcomes that are drawn anew, from a truth that is known: a
// generalised linear model's coefficients. Sites, their sizes, columns and how these go together stay
// exactly what they are.
//
//   const std::vector<double> truth = draw_truth(prior, 13, seed);
//   const auto data = draw_outcomes(*rows, truth, likelihood, seed);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/likelihood.h"
#include "fedep/round/server_state.h"

namespace fedep {

// Weights, then the intercept, each from the prior, or from its own where it has one.
std::vector<double> draw_truth(const PriorSettings& prior, std::size_t size, std::uint64_t seed,
                               std::span<const CoordinatePrior> own = {});

// Nothing is held out. `rows` must outlive the result and have dense features and one outcome: yes or
// no, a number or a count. Throws InputError where the truth makes counts that a float does not hold.
// `site_sd`: what clients' intercepts vary by around the truth's, each drawn from a normal distribution.
std::unique_ptr<Dataset> draw_outcomes(const Dataset& rows, std::span<const double> truth,
                                       const Likelihood& likelihood, std::uint64_t seed,
                                       double site_sd = 0);

}  // namespace fedep
