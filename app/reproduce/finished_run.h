// Runs that a command finds where it would put them: begun, and perhaps over, by this recipe.
#pragma once

#include <filesystem>

#include "fedep/config/recipe.h"

namespace fedep {

bool is_begun(const std::filesystem::path& run);
// Of a run that was played by this recipe to its end.
bool is_finished(const Recipe& recipe, const std::filesystem::path& run);

}  // namespace fedep
