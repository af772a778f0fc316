// 04: a whole run from a program. A recipe is a plain struct; make_task() turns its names into data,
// model and inference; play_run() plays the phases and calls back after every round.
#include <fmt/format.h>

#include "fedep/config/resolve.h"
#include "fedep/round/run.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/process.h"
#include "fedep/sim/task.h"

using namespace fedep;

int main() {
  prepare_process();  // BLAS and memory, as the simulator wants them
  Recipe plan;
  plan.data = {.name = "synthetic", .clients = 10, .examples = 100};
  plan.client = {.epochs = 3, .batch = 10, .optimizer = {.lr = 0.02, .momentum = 0.9}};
  plan.server.clients_per_round = 5;
  plan.phases.push_back({.algorithm = "fed_avg", .rounds = 10});
  plan.phases.push_back({.algorithm = "fed_sep", .rounds = 30});
  plan.phases[1].inference = InferenceSettings{.name = "scaled_identity", .alpha = 0.02};
  plan.evaluate = {.every = 10, .samples = 10};
  const Recipe recipe = resolved(plan);  // every choice that was left open is made

  const std::unique_ptr<Task> task = make_task(recipe, "");
  const std::unique_ptr<SiteStore> sites = make_memory_store();
  const std::unique_ptr<Place> place = find_place("cpu", 1).make(recipe, *task, *sites, {});
  const std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });

  const auto watch = [](const RoundReport& report) {
    if (report.metrics.empty()) return;  // this round was not scored
    fmt::print("round {:2}, {:7}: {} {:.3f}\n", report.round + 1, report.phase,
               report.metrics[0].first, report.metrics[0].second);
  };
  // Nobody keeps this run: nothing is written. With a DiskKeeper it would be, and could be resumed.
  const RunResult result = play_run({recipe, phases, task->population(), task->layout(), *place},
                                    task->initial_weights(), {.watch = watch});
  return result.metrics[0].second > 0.5 ? 0 : 1;  // of ten classes
}
