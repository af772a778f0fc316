#include "app/run_recipe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "app/interrupt.h"
#include "app/progress.h"
#include "app/version.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/tensorboard.h"
#include "fedep/sim/threads.h"

namespace fedep {
namespace {

std::vector<Phase> phases_of(const Recipe& recipe, const Task& task) {
  return plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
}

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// The event file of this start of the run, made when its first round is over.
class Events {
 public:
  explicit Events(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void write(const RoundReport& report) {
    const std::int64_t step = report.round + 1;  // completed rounds
    const double now = unix_seconds();
    if (!file_) file_.emplace(directory_, step, now);
    Metrics scalars = report.metrics;
    if (report.numbers.steps > 0) {
      scalars.emplace_back("train_loss", report.numbers.loss_sum / double(report.numbers.steps));
    }
    scalars.emplace_back("seconds", report.seconds);
    file_->write(step, now, scalars);
  }

 private:
  std::filesystem::path directory_;
  std::optional<EventFile> file_;
};

}  // namespace

void check_run(const Recipe& recipe, const Task& task) {
  const std::size_t clients = task.population().size();
  if (std::size_t(recipe.server.clients_per_round) > clients) {
    throw InputError(
        fmt::format("server.clients_per_round must be at most {}, the number of clients, but is {}",
                    clients, recipe.server.clients_per_round));
  }
  phases_of(recipe, task);
  check_optimizer(recipe.client.optimizer);  // also where this task's clients have none to run
}

RunResult run_recipe(const Recipe& recipe, const RunRecipeOptions& options) {
  const std::unique_ptr<Task> task = make_task(recipe, options.data);
  check_run(recipe, *task);
  const std::vector<Phase> phases = phases_of(recipe, *task);
  const RunDirectory directory = options.resume ? RunDirectory::reopen(options.out, recipe)
                                                : RunDirectory::create(options.out, recipe);
  const std::unique_ptr<SiteStore> sites = recipe.checkpoint.sites == SiteMemory::disk
                                               ? make_disk_store(directory.sites())
                                               : make_memory_store(directory.sites());
  const auto make_inference = [&] { return task->make_inference(); };
  const std::unique_ptr<Executor> executor =
      make_threads(task->population(), make_inference, sites.get(), options.threads);

  Progress progress(isatty(STDERR_FILENO) == 1);
  Events events(directory.path());
  const RunHooks hooks{
      .evaluate = [&](const ServerState& state, bool last) { return task->evaluate(state, last); },
      .watch =
          [&](const RoundReport& report) {
            events.write(report);
            progress.show(report);
          },
      .stop_requested = interrupt_requested};
  const Json header{{"kind", "run"},
                    {"recipe", to_toml(recipe)},
                    {"seed", recipe.seed},
                    {"version", version_text()},
                    {"machine", machine_text()},
                    {"device", device_text(options.threads)}};
  catch_interrupts();
  return play_run(
      {recipe, phases, task->population(), task->layout(), *executor, *sites, &directory},
      task->initial_weights(), header, hooks, options.resume);
}

Recipe shortened(Recipe recipe, std::int64_t rounds) {
  std::vector<PhaseSettings> phases;
  for (PhaseSettings phase : recipe.phases) {
    if (rounds <= 0) break;
    phase.rounds = int(std::min<std::int64_t>(rounds, phase.rounds));
    rounds -= phase.rounds;
    phases.push_back(std::move(phase));
  }
  recipe.phases = std::move(phases);
  return recipe;
}

std::int64_t rounds_of(const Recipe& recipe) {
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return rounds;
}

std::filesystem::path data_folder(const std::string& option) {
  if (!option.empty()) return option;
  const char* from_environment = std::getenv("FEDEP_DATA");
  return from_environment != nullptr ? from_environment : "";
}

void check_device(const std::string& device) {
  constexpr std::array<std::string_view, 1> kDevices{"cpu"};
  if (device != kDevices[0]) throw InputError(unknown_name("device", device, kDevices));
}

}  // namespace fedep
