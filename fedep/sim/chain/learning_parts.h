// The inside of local_learning.h, for who does the same elsewhere (sim/gpu/cuda_cohort.h) and compares.
#pragma once

#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/chain/label_tape.h"
#include "fedep/sim/chain/local_learning.h"

namespace fedep {

// How chains run in a phase.
ChainSettings chain_settings(const Recipe& recipe, const Phase& phase);

// make_local_learning() with a `tape` that gets the labels that are drawn.
std::unique_ptr<LocalInference> make_recorded_learning(const Dataset& data,
                                                       const Population& clients,
                                                       const Recipe& recipe,
                                                       std::unique_ptr<Model> model,
                                                       LabelTape& tape);

}  // namespace fedep
