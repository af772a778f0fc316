// Runs that a command finds where it would put them: begun, and perhaps over, by this recipe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fedep/config/recipe.h"

namespace fedep {

bool is_begun(const std::filesystem::path& run);
// Of a run that was played by this recipe to its end.
bool is_finished(const Recipe& recipe, const std::filesystem::path& run);
// In what a run that was begun differs from this recipe, so that it does not go on by it; nothing where it may.
std::optional<std::string> other_settings(const Recipe& recipe, const std::filesystem::path& run);
// How a run that was begun went, or may have gone, further than this recipe goes; nothing where it did not.
std::optional<std::string> further_than_asked(const Recipe& recipe,
                                              const std::filesystem::path& run);

}  // namespace fedep
