// Pictures of what a study of intervals found (metric/interval_coverage.h).
//
//   file << draw_coverage(found, names) << draw_ranks(found);
#pragma once

#include <span>
#include <string>

#include "fedep/metric/interval_coverage.h"

namespace fedep {

// Share of truths that intervals hold, a row for each coefficient and one for all; more than forty
// coefficients have the row for all alone.
std::string draw_coverage(const IntervalCoverage& found, std::span<const std::string> names);

// Of each coefficient, the part of truths up to each rank less what it would be if ranks were uniform,
// over the band that 95 of 100 such curves stay in then. Too narrow intervals make an S, wide ones its
// mirror image, means that are off a bow.
std::string draw_ranks(const IntervalCoverage& found);

}  // namespace fedep
