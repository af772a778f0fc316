#include "app/run/run_home.h"

#include "fedep/store/site_files.h"

namespace fedep {

std::unique_ptr<SiteStore> make_home(const Recipe& recipe, const RunDirectory& directory,
                                     const PlaceRow& place) {
  if (place.own_memory || recipe.checkpoint.sites == SiteMemory::disk) {
    return make_disk_store(directory.sites());
  }
  return make_memory_store(std::make_unique<SiteFiles>(directory.sites()));
}

}  // namespace fedep
