// The shape of a data set's examples, as models ask for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedep/data/dataset.h"

namespace fedep {

// "[24, 24, 3]", "[10000] sparse"
std::string shape_text(const DatasetInfo& data);

struct ImageShape {
  std::size_t height, width, channels;
};

// The extents of the data's images. Throws InputError, in the name of `model`, unless they are images
// at least `smallest` high and wide.
ImageShape image_shape(std::string_view model, const DatasetInfo& data, std::int64_t smallest);

}  // namespace fedep
