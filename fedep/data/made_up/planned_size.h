// How large made-up data will be, before a byte of them is: a recipe may ask for a billion columns.
#pragma once

#include "fedep/config/recipe.h"

namespace fedep {

struct PlannedSize {
  double bytes = 0;    // of all clients' examples
  double weights = 0;  // of the smallest model there is for them
};

PlannedSize toy_size(const DataSettings& settings);
PlannedSize synthetic_size(const DataSettings& settings);
PlannedSize regression_size(const DataSettings& settings);
PlannedSize random_images_size(const DataSettings& settings);
PlannedSize random_tags_size(const DataSettings& settings);

}  // namespace fedep
