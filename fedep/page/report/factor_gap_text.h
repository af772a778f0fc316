// What a run's log says of how far q is from the product of the prior and its clients' factors
// (round/diagnosis/factor_gap.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/store/log/history.h"

namespace fedep {

// The latest round in which somebody looked; nothing if nobody did.
std::optional<RoundRecord> last_factor_gap(const std::vector<RoundRecord>& rounds);

// A sentence where it is far, with what parts them and the key to change; else empty.
std::string factor_gap_text(const Recipe& recipe, const RoundRecord& round);

}  // namespace fedep
