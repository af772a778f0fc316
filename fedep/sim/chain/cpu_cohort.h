// Cohort operations on one CPU core: chains one after another, Fisher information by the model's
// own per-example squares.
#pragma once

#include <memory>
#include <vector>

#include "fedep/inference/cohort.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {

// One row per input. The inputs' references must outlive the cohort.
std::unique_ptr<Cohort<HostVector<float>>> make_cpu_cohort(Model& model,
                                                           const std::vector<ChainInput>& inputs);

}  // namespace fedep
