// Reads a recipe and makes its task with an installed fedep.
#include <cstdio>

#include <fedep/config/read_recipe.h>
#include <fedep/sim/process.h>
#include <fedep/sim/task.h>

int main() {
  fedep::prepare_process();
  const fedep::Recipe recipe = fedep::parse_recipe(
      "[data]\nname = \"synthetic\"\nclients = 4\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = "
      "1\n");
  const auto task = fedep::make_task(recipe, "");
  std::printf("%zu clients, %zu weights\n", task->population().size(),
              fedep::size_of(task->layout()));
}
