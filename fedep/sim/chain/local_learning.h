// Local inference on a data set and a model: what a worker of the simulator runs for each client.
#pragma once

#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/round/host_rows.h"

namespace fedep {

// Clients have the same places in `data` and `clients`. What is referred to must outlive the result.
std::unique_ptr<LocalInference> make_local_learning(const Dataset& data, const Population& clients,
                                                    const Recipe& recipe,
                                                    std::unique_ptr<Model> model);

}  // namespace fedep
