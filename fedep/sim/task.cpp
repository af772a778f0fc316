#include "fedep/sim/task.h"

#include "fedep/data/registry.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/toy/toy_task.h"

namespace fedep {

std::unique_ptr<Task> make_task(const Recipe& recipe, const std::filesystem::path& data_folder) {
  return find_dataset(recipe.data.name).has_examples() ? make_learning_task(recipe, data_folder)
                                                       : make_toy_task(recipe);
}

}  // namespace fedep
