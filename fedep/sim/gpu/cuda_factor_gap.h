// How far q is from the product of prior and factors (round/diagnosis/factor_gap.h), where factors live
// on a GPU: it adds them up, client by client, and nothing but the sums comes home.
#pragma once

#include <optional>

#include "fedep/cuda/round/device_sites.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/server_state.h"

namespace fedep {

// `state`, whose messages are home, is what the phase's rounds over `sites` have left. Sums are in
// double where the host's are on a grid: the numbers agree to rounding. Nothing before a round.
std::optional<FactorGap> cuda_factor_gap(const ServerState& state, const Phase& phase,
                                         const Population& population, const DeviceSites& sites);

}  // namespace fedep
