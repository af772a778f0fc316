// Priors of single coefficients, which a recipe's [[prior]] names: of a linear model on a table, whose
// coefficients have names.
//
//   const std::vector<CoordinatePrior> own = coefficient_priors(recipe, data.info());
//   initial_server_state(recipe.server, weights, own);             // q_0: server.prior for the rest
//
// A pattern's * stands for any text, and the last pattern that fits counts. The intercept is named, never fitted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/round/phase.h"
#include "fedep/round/server_state.h"

namespace fedep {

// Whether a name is a pattern's.
bool fits_pattern(std::string_view pattern, std::string_view name);

// By coordinate, ascending; of a coefficient that several classes have, one for each class. Throws InputError
// for a pattern that fits none, with the nearest name, and where there can be no such priors: server.prior is
// flat, the model is not linear, the data are no table, no phase infers.
std::vector<CoordinatePrior> coefficient_priors(const Recipe& recipe, const DatasetInfo& data);

// Throws InputError where a phase that infers has one precision for all coefficients.
void check_prior_families(const Recipe& recipe, const std::vector<Phase>& phases);

// "intercept: N(0, 10²)", a line for each prior that differs from server.prior, and one for the rest. Nothing
// without [[prior]].
std::vector<std::string> told_priors(const Recipe& recipe, const DatasetInfo& data);

}  // namespace fedep
