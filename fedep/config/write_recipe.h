// A recipe as TOML text: every default written out, keys in the order of fields.h, floats the
// shortest that read back to the same bits. For a recipe that read_recipe gave,
// parse_recipe(to_toml(recipe)) == recipe.
#pragma once

#include <string>

#include "fedep/config/recipe.h"

namespace fedep {

std::string to_toml(const Recipe& recipe);

}  // namespace fedep
