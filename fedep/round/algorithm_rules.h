// What a row of the algorithm table asks of a phase, besides what every phase may have.
#pragma once

#include <cstddef>

#include "fedep/round/phase.h"

namespace fedep {

// Throws InputError for settings with which the algorithm would not be what its name says: an
// optimizer where it has none, a method or a cavity of others, no prior where it needs one, keys of
// other algorithms.
void check_algorithm(const Recipe& recipe, std::size_t phase);

// Whether the phase's steps follow from its algorithm alone: nothing of server.damping is read.
bool has_own_damping(const Algorithm& algorithm);

// Fills what the keys of some algorithms say: mu, penalty, temperature, and damping γ ρ of ADMM.
void apply_algorithm(const PhaseSettings& settings, Phase& phase);

}  // namespace fedep
