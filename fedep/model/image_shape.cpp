#include "fedep/model/image_shape.h"

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

std::string shape_text(const DatasetInfo& data) {
  std::string text;
  for (const std::int64_t extent : data.features) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  }
  return fmt::format("[{}]{}", text, data.sparse ? " sparse" : "");
}

ImageShape image_shape(std::string_view model, const DatasetInfo& data, std::int64_t smallest) {
  if (data.sparse || data.features.size() != 3 || data.features[0] < smallest ||
      data.features[1] < smallest || data.features[2] < 1) {
    throw InputError(fmt::format(
        "model {}: data must be images [height, width, channels] of at least {}x{}, but {} has {}",
        model, smallest, smallest, data.name, shape_text(data)));
  }
  return {std::size_t(data.features[0]), std::size_t(data.features[1]),
          std::size_t(data.features[2])};
}

}  // namespace fedep
