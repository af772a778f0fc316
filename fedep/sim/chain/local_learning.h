// Local inference on a data set and a model: what a worker of the simulator runs for each client.
#pragma once

#include <map>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/round/host_rows.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {

// Client keys -> index in the data set.
using ClientIndex = std::map<std::uint64_t, std::size_t>;

// How chains run in a phase.
ChainSettings chain_settings(const Recipe& recipe, const Phase& phase);

// What is referred to must outlive the result. `tape` gets the labels that are drawn, if it is not
// null.
std::unique_ptr<LocalInference> make_local_learning(const Dataset& data, const ClientIndex& index,
                                                    const Recipe& recipe,
                                                    std::unique_ptr<Model> model,
                                                    LabelTape* tape = nullptr);

}  // namespace fedep
