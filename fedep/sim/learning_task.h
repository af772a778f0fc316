// A data set and a model as a federated task: chains of SGD on the clients' data, inference methods
// over them, and scores on held-out examples.
#pragma once

#include <filesystem>
#include <memory>

#include "fedep/sim/task.h"

namespace fedep {

std::unique_ptr<Task> make_learning_task(const Recipe& recipe,
                                         const std::filesystem::path& data_folder);

}  // namespace fedep
