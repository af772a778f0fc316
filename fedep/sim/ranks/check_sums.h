// Whether ranks add up, tried out before the first round: libraries have added wrongly before.
//
//   check_sums(*ranks, *ranks);
//   check_sums(*group, *ranks);   // of those that play a run together
#pragma once

#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// Adds numbers whose sum is known over `adding`, which is every rank of `all` or the group that it is
// in. Throws RunError, the same on every rank of `all`, where one of them has a wrong sum.
void check_sums(Ranks& adding, Ranks& all);

}  // namespace fedep
