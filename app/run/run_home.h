// Where a run's factors are kept.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/place/places.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// Where factors live elsewhere, what a checkpoint saves of them is in files alone. `scratch`: where
// those that are on a disk are between checkpoints; empty: where they are saved. `weights`: that factors
// are of.
std::unique_ptr<SiteStore> make_home(const Recipe& recipe, const RunDirectory& directory,
                                     const PlaceRow& place, std::size_t weights,
                                     const std::filesystem::path& scratch);

// Throws InputError for a --scratch that nothing can be written to.
void check_scratch(const std::filesystem::path& scratch);
// Empty, or why nothing goes there.
std::string scratch_remark(const Recipe& recipe, const PlaceRow& place,
                           const std::filesystem::path& scratch);

}  // namespace fedep
