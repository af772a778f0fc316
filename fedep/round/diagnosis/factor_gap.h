// How far q is from what it should be, the product of the prior and all factors: |q - q_0 Π q_k| / |q|,
// for η and for Λ. Rounding leaves 1e-6 or so. With server momentum and factor_clock = "visit" it is
// 0.2 and more, since the server's momentum acts in every round and a client's only on its visits; an
// optimizer whose steps do not add up, and a guard that raises precisions, part them too.
#pragma once

#include <span>

#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/server_state.h"
#include "fedep/round/site_store.h"

namespace fedep {

// Reads every client's factor. The phase is a stateful one, and `state` and `sites` are what its
// rounds have left. An off-diagonal element of a full precision matrix counts twice.
FactorGap factor_gap(const ServerState& state, const Phase& phase, const Population& population,
                     SiteStore& sites);

// The same where somebody else has added up all factors. Both NaN where a sum is not finite.
FactorGap factor_gap_of_sums(const ServerState& state, const Phase& phase,
                             std::span<const double> eta, std::span<const double> lambda);

}  // namespace fedep
