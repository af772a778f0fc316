// Local inference on a data set and a model: what a worker of the simulator runs for each client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/round/host_rows.h"

namespace fedep {

// Client keys -> index in the data set.
using ClientIndex = std::map<std::uint64_t, std::size_t>;

// What is referred to must outlive the result.
std::unique_ptr<LocalInference> make_local_learning(const Dataset& data, const ClientIndex& index,
                                                    const Recipe& recipe,
                                                    std::unique_ptr<Model> model);

}  // namespace fedep
