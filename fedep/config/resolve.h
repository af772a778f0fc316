// Defaults that depend on other settings, filled in: a phase's cavity and weight from its
// algorithm, FedPA's inference (its rho and mixin_epochs act without a name), the optimizer of
// clients' factors from the server's. What is resolved stays as it is:
// resolved(resolved(r)) == resolved(r).
//
// Every recipe comes through here, whether it was read or put together in code, and is checked by the
// same rules (check_recipe.h):
//
//   Recipe plan;
//   plan.data = {.name = "synthetic"};
//   plan.phases.push_back({.algorithm = "fed_avg", .rounds = 10});
//   const Recipe recipe = resolved(plan);
#pragma once

#include "fedep/config/recipe.h"

namespace fedep {

// Throws InputError for the first setting that is not what it may be.
Recipe resolved(Recipe recipe);

// The same without a check, for what is no whole recipe. Throws InputError for an algorithm that does
// not exist.
Recipe filled_in(Recipe recipe);

}  // namespace fedep
