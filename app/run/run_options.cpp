#include "app/run/run_options.h"

#include <cstdlib>

#include "fedep/message/error.h"

namespace fedep {

std::filesystem::path data_folder(const std::string& option) {
  if (!option.empty()) return option;
  const char* from_environment = std::getenv("FEDEP_DATA");
  return from_environment != nullptr ? from_environment : "";
}

const PlaceRow& place_of(const RunRecipeOptions& options) {
  return find_place(options.device, options.threads, options.ranks != nullptr);
}

PlaceOptions place_options(const RunRecipeOptions& options) {
  return {.threads = options.threads,
          .ranks = options.ranks,
          .precision = find_precision(options.precision)};
}

void check_device(const std::string& device, const std::string& precision) {
  find_precision(precision);
  if (const std::string why = find_place(device, 1).problem(); !why.empty()) throw InputError(why);
}

std::string device_text(const RunRecipeOptions& options) {
  return place_of(options).text(place_options(options));
}

}  // namespace fedep
