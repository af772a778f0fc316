// Counts from a stream.
#pragma once

#include "fedep/random/stream.h"

namespace fedep {

// A Poisson count of this mean, zero or more. Exact up to a mean of 10,000; beyond that a normal number,
// rounded, whose distribution differs by less than a hundredth of its deviation.
double draw_poisson(Stream& stream, double mean);

}  // namespace fedep
