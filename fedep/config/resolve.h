// Defaults that depend on other settings, filled in: a phase's cavity and weight from its
// algorithm, FedPA's inference (its rho and mixin_epochs act without a name), the optimizer of
// clients' factors from the server's. What is resolved stays as it is:
// resolved(resolved(r)) == resolved(r).
#pragma once

#include "fedep/config/recipe.h"

namespace fedep {

// Throws InputError for an algorithm that does not exist.
Recipe resolved(Recipe recipe);

}  // namespace fedep
