// Checks a recipe, read or put together in code, by the rules of fields.h. resolved() calls it.
#pragma once

#include "fedep/config/recipe.h"

namespace fedep {

// Throws InputError for the first setting that is not what it may be:
//   client.epochs must be at least 1, but is 0
void check_recipe(const Recipe& recipe);

}  // namespace fedep
