// Clients' states on a disk that need not outlive the job, such as a machine's own: written without
// waiting for the disk, and brought to the archive only when they are saved.
//
//   const auto sites = make_scratch_store("/scratch", std::make_unique<SiteFiles>("run/sites"));
#pragma once

#include <filesystem>
#include <memory>

#include "fedep/round/site_store.h"

namespace fedep {

// Makes a folder of its own in `scratch`, which must be there, and removes it in the end. Throws
// InputError where it cannot.
std::unique_ptr<SiteStore> make_scratch_store(const std::filesystem::path& scratch,
                                              std::unique_ptr<SiteArchive> archive);

}  // namespace fedep
