// Intervals of a normal distribution.
//
//   mean ± deviations_of(0.95) * sd
#pragma once

namespace fedep {

// How many standard deviations to each side of the mean hold this part of a normal distribution: 1.96 for 0.95.
// Throws InputError unless 0 < level < 1.
double deviations_of(double level);

}  // namespace fedep
