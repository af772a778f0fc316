// A place of several processes: each is a rank (sim/ranks/ranks.h), plays its share of a round's
// clients on its cores, and makes the same step of the same sum, to the serial place's bits. A row of
// sim/place/places.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fedep/sim/place/places.h"

namespace fedep {

std::string mpi_problem();
std::string mpi_text(const PlaceOptions& options);
std::unique_ptr<Place> make_mpi_place(const Recipe& recipe, Task& task, SiteStore& home,
                                      const PlaceOptions& options);

// Throws InputError where no launcher started this process.
void check_has_ranks(std::string_view place, const PlaceOptions& options);

// Whether one of them wishes it; all ranks together.
bool any_wishes(Ranks& ranks, bool wished);

// Throws RunError, on every rank, where ranks have not come to the same q: a fault of memory, of a
// CPU, or of this program.
void check_same_state(Ranks& ranks, const ServerState& state);

}  // namespace fedep
