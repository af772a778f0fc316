// A sum on the grid turned into a message piece by piece, so that who adds up large arrays can do so while
// a piece is still in a cache.
#pragma once

#include <cstdint>
#include <span>

#include "fedep/round/grid.h"

namespace fedep {

// out[i] = units[i] 2^exponent, as from_grid() has it.
void scale_units(std::span<const std::int64_t> units, int exponent, std::span<float> out);

// The message with these arrays; lambda as lambda_span() has it.
Message message_of(Family family, HostVector<float> eta, HostVector<float> lambda);

}  // namespace fedep
