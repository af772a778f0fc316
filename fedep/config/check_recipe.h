// Checks a recipe that was put together in code by the same rules as one that was read.
#pragma once

#include "fedep/config/recipe.h"

namespace fedep {

// Throws InputError for the first setting that is not what it may be:
//   client.epochs must be at least 1, but is 0
void check_recipe(const Recipe& recipe);

}  // namespace fedep
