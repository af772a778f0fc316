#include "app/run/run_options.h"

#include <cstdlib>

#include "fedep/message/error.h"

namespace fedep {

void add_scratch_option(Command& command, std::string& scratch) {
  command.add_option("--scratch", scratch,
                     "folder for what need not outlive the command, such as a machine's own disk");
}

void add_mixed_cpus_option(Command& command, bool& mixed_cpus) {
  command.add_flag("--mixed-cpus", mixed_cpus,
                   "ranks may compute differently: bits then depend on who plays whom");
}

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

void check_device(const std::string& device, const std::string& precision, bool over_ranks) {
  find_precision(precision);
  const PlaceRow& place = find_place(device, 1, over_ranks);
  if (place.claim != nullptr) place.claim();
  if (const std::string why = place.problem(); !why.empty()) throw InputError(why);
}

std::string one_device_text(const RunRecipeOptions& options) {
  return find_place(options.device, options.threads).text(place_options(options));
}

std::string device_text(const RunRecipeOptions& options) {
  return place_of(options).text(place_options(options));
}

}  // namespace fedep
