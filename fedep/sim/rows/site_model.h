// What clients' own intercepts and estimated noise (model/shared_extras.h) ask of a recipe and its data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/inference/rows/site_tilted.h"
#include "fedep/model/shared_extras.h"
#include "fedep/round/server_state.h"

namespace fedep {

inline bool has_extras(const ModelSettings& model) {
  return model.site_intercept || model.estimate_noise;
}
// The key that asks for them, for errors.
std::string extras_key(const ModelSettings& model);

SiteParts parts_of(const SharedExtras& extras);

// Of all clients' training outcomes, from what each can report of its own: their number, their mean and
// their squares around it.
struct OutcomeMoments {
  double rows = 0;
  double mean = 0;
  double deviation = 0;
};
// Of numbers; throws InputError where they do not vary.
OutcomeMoments outcome_moments(const Dataset& data);

// Throws InputError where numbers with these moments are not what the prior expects: what an intercept or a
// coefficient is kept from explaining, estimated deviations would take for noise or for hospitals' differences,
// and no score would show it. `own` are the priors of single coefficients.
void check_outcome_prior(const Recipe& recipe, const std::vector<CoordinatePrior>& own,
                         const SharedExtras& extras, const OutcomeMoments& outcome);

// Whether their priors are in units of the outcome's deviation.
bool needs_deviation(const SharedExtras& extras, TargetKind target);
// Priors of the coordinates that are no weights, `deviation` being the outcome's where it is needed.
std::vector<CoordinatePrior> extra_priors(const SharedExtras& extras, TargetKind target,
                                          double deviation);

// Throws InputError, naming the key, where a recipe's settings do not go with them. What full
// families ask is not looked at here.
void check_site_model(const Recipe& recipe);

}  // namespace fedep
