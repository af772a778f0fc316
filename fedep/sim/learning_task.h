// A data set and a model as a federated task: chains of SGD on the clients' data, inference methods
// over them, and scores on held-out examples.
#pragma once

#include <filesystem>
#include <memory>

#include "fedep/sim/task.h"

namespace fedep {

// The recipe's data set; its held-out part is the validation part where the recipe asks for one, its
// calibration() what is kept for temperatures, and its unlike() what is held out of classes that are unseen.
std::unique_ptr<Dataset> open_task_data(const Recipe& recipe,
                                        const std::filesystem::path& data_folder);

// Whether somebody has given rows to fit a temperature with.
bool has_calibration_rows(const Dataset& data);

// What make_learning_task() checks of clients' settings and phases, for who has the data's kind of
// target and no need of the data.
void check_learning(const Recipe& recipe, TargetKind target);

std::unique_ptr<Task> make_learning_task(const Recipe& recipe,
                                         const std::filesystem::path& data_folder);
// What is known beside a recipe and its data.
struct TaskOptions {
  double outcome_deviation =
      0;  // of numbers, which priors of log_site_sd and log_noise are by; 0: the data's
};
// The same on data at hand, whatever the recipe says of them.
std::unique_ptr<Task> make_learning_task(const Recipe& recipe, std::unique_ptr<Dataset> data,
                                         const TaskOptions& options = {});

}  // namespace fedep
