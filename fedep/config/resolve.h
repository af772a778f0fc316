// Defaults that depend on other settings, filled in: a phase's cavity and weight from its
// algorithm, FedPA's inference (its rho and mixin_epochs act without a name), the optimizer of
// clients' factors from the server's. What is resolved stays as it is:
// resolved(resolved(r)) == resolved(r). Where factors begin stays open until a recipe is written,
// so that a run that goes on can have what it began with.
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

// Where the factors of a phase begin: as it says, else flat in a first phase with a proper prior, in
// which q then begins as the prior; else around the mean, which is what later phases have to go on
// from and flat priors need.
FactorStart factor_start(const Recipe& recipe, std::size_t phase);

// Where factors begin in phases of `given` that do not say it is where they began in those of a run
// whose directory has the recipe `there`: defaults of other versions are other ones.
Recipe with_factor_starts_of(const Recipe& there, Recipe given);

// Throws InputError for the first setting that is not what it may be.
Recipe resolved(Recipe recipe);

// The same and where factors begin, without a check, for what is no whole recipe. Throws InputError for an algorithm that does
// not exist.
Recipe filled_in(Recipe recipe);

}  // namespace fedep
