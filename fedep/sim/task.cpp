#include "fedep/sim/task.h"

#include "fedep/sim/learning_task.h"
#include "fedep/sim/toy_task.h"

namespace fedep {

std::unique_ptr<Task> make_task(const Recipe& recipe, const std::filesystem::path& data_folder) {
  if (recipe.data.name == "toy") return make_toy_task(recipe);
  return make_learning_task(recipe, data_folder);
}

}  // namespace fedep
