// What runs on cores alone, refused before a run begins elsewhere.
#pragma once

#include <string_view>

#include "fedep/config/recipe.h"

namespace fedep {

// Throws InputError if a phase has an algorithm or an inference method that this device does not have.
void refuse_cpu_only(const Recipe& recipe, std::string_view device);

}  // namespace fedep
