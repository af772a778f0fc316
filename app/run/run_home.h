// Where a run's factors are kept.
#pragma once

#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/place/places.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// Where factors live elsewhere, what a checkpoint saves of them is in files alone.
std::unique_ptr<SiteStore> make_home(const Recipe& recipe, const RunDirectory& directory,
                                     const PlaceRow& place);

}  // namespace fedep
