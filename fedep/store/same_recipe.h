// Whether two recipes are of one run. More rounds or phases at the end, other evaluation and other
// checkpoints are not another recipe.
//
//   if (const auto differs = recipe_difference(there, now)) throw InputError(*differs);
#pragma once

#include <optional>
#include <string>

#include "fedep/config/recipe.h"

namespace fedep {

// Nothing if both play the same rounds the same way, as far as the shorter one goes; else
// "[client] epochs = 5 there, and now [client] epochs = 3".
std::optional<std::string> recipe_difference(const Recipe& there, const Recipe& now);

}  // namespace fedep
