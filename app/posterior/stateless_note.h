// What must be said of means where clients without memory take turns.
#pragma once

#include <cstdint>
#include <string>

#include "app/posterior/saved_posterior.h"

namespace fedep {

// Stochastic EP ends where the deltas of all clients cancel. Where a round asks some of `clients`, theirs
// do not, and means stay where the last rounds left them. Empty where all are asked, and where clients
// have factors of their own.
std::string stateless_note(const SavedPosterior& saved, std::int64_t clients);

}  // namespace fedep
