#include "app/run/run_home.h"

#include <unistd.h>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/store/scratch_store.h"
#include "fedep/store/site_files.h"

namespace fedep {

std::unique_ptr<SiteStore> make_home(const Recipe& recipe, const RunDirectory& directory,
                                     const PlaceRow& place, std::size_t weights,
                                     const std::filesystem::path& scratch) {
  if (place.own_memory) return make_disk_store(directory.sites(), weights);
  auto files = std::make_unique<SiteFiles>(directory.sites(), weights);
  if (recipe.checkpoint.sites != SiteMemory::disk) {
    return make_memory_store(std::move(files));
  }
  if (scratch.empty()) return make_disk_store(directory.sites(), weights);
  return make_scratch_store(scratch, std::move(files));
}

void check_scratch(const std::filesystem::path& scratch) {
  if (scratch.empty()) return;
  if (!std::filesystem::is_directory(scratch) || ::access(scratch.c_str(), W_OK | X_OK) != 0) {
    throw InputError(
        fmt::format("--scratch {}: must be a folder to write to, but is not", scratch.string()));
  }
}

std::string scratch_remark(const Recipe& recipe, const PlaceRow& place,
                           const std::filesystem::path& scratch) {
  if (scratch.empty() || (!place.own_memory && recipe.checkpoint.sites == SiteMemory::disk)) {
    return {};
  }
  return fmt::format(
      "nothing goes to --scratch {}: clients' factors are in memory; checkpoint.sites = \"disk\" "
      "keeps them there",
      scratch.string());
}

}  // namespace fedep
