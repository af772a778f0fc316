#include "app/run_command.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "app/interrupt.h"
#include "app/progress.h"
#include "app/version.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/run.h"
#include "fedep/sim/serial.h"
#include "fedep/sim/task.h"
#include "fedep/sim/threads.h"

namespace fedep {
namespace {

struct RunOptions {
  std::string recipe;
  std::string out;
  std::string data;
  std::size_t threads = 1;
  std::optional<std::int64_t> rounds;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> overrides;
  bool resume = false;
};

void add_recipe_options(CLI::App& command, RunOptions& options) {
  command.add_option("recipe", options.recipe, "recipe file (TOML)")->required();
  command.add_option("--data", options.data, "folder with data sets; default $FEDEP_DATA");
  command.add_option("--rounds", options.rounds, "stop after so many rounds")
      ->check(whole_number(1));
  command.add_option("--seed", options.seed, "seed instead of the recipe's")
      ->check(whole_number(0));
  command.add_option("--set", options.overrides, "section.key=value instead of the recipe's")
      ->take_all();
}

Recipe recipe_of(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.seed) overrides.push_back(fmt::format("seed={}", *options.seed));
  Recipe recipe = read_recipe(options.recipe, overrides);
  if (!options.rounds) return recipe;
  // Later phases go, the one that the limit falls into ends with it.
  std::int64_t left = *options.rounds;
  std::vector<PhaseSettings> phases;
  for (PhaseSettings phase : recipe.phases) {
    if (left <= 0) break;
    phase.rounds = int(std::min<std::int64_t>(left, phase.rounds));
    left -= phase.rounds;
    phases.push_back(std::move(phase));
  }
  recipe.phases = std::move(phases);
  return recipe;
}

std::filesystem::path data_folder(const RunOptions& options) {
  if (!options.data.empty()) return options.data;
  const char* from_environment = std::getenv("FEDEP_DATA");
  return from_environment != nullptr ? from_environment : "";
}

std::vector<Phase> phases_of(const Recipe& recipe, const Task& task) {
  return plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
}

// Throws InputError for what would only be found out in some later round.
void check_run(const Recipe& recipe, const Task& task) {
  const std::size_t clients = task.population().size();
  if (std::size_t(recipe.server.clients_per_round) > clients) {
    throw InputError(fmt::format("server.clients_per_round must be at most {}, the number of clients, but is {}",
                                 clients, recipe.server.clients_per_round));
  }
  phases_of(recipe, task);
  check_optimizer(recipe.client.optimizer);  // also where this task's clients have none to run
}

std::filesystem::path default_out(const RunOptions& options) {
  return std::filesystem::path("run") / std::filesystem::path(options.recipe).stem();
}

int run(const RunOptions& options) {
  const Recipe recipe = recipe_of(options);
  const std::unique_ptr<Task> task = make_task(recipe, data_folder(options));
  check_run(recipe, *task);
  const std::vector<Phase> phases = phases_of(recipe, *task);

  const std::filesystem::path out = options.out.empty() ? default_out(options) : std::filesystem::path(options.out);
  const RunDirectory directory = options.resume ? RunDirectory::reopen(out, recipe)
                                                : RunDirectory::create(out, recipe);
  const std::unique_ptr<SiteStore> sites = recipe.checkpoint.sites == SiteMemory::disk
                                               ? make_disk_store(directory.sites())
                                               : make_memory_store(directory.sites());
  const auto make_inference = [&] { return task->make_inference(); };
  const std::unique_ptr<Executor> executor =
      make_threads(task->population(), make_inference, sites.get(), options.threads);

  Progress progress(isatty(STDERR_FILENO) == 1);
  const RunHooks hooks{.evaluate = [&](const ServerState& state, bool last) { return task->evaluate(state, last); },
                       .watch = [&](const RoundReport& report) { progress.show(report); },
                       .stop_requested = interrupt_requested};
  const Json header{{"kind", "run"},
                    {"recipe", to_toml(recipe)},
                    {"seed", recipe.seed},
                    {"version", version_text()},
                    {"machine", machine_text()}};
  catch_interrupts();
  const RunResult result = play_run({recipe, phases, task->population(), task->layout(), *executor,
                                     *sites, &directory},
                                    task->initial_weights(), header, hooks, options.resume);
  if (result.end == RunEnd::interrupted) {
    fmt::print(stderr, "stopped after round {}; go on with --resume\n", result.state.round);
    return 130;
  }
  for (const auto& [name, value] : result.metrics) fmt::print("{} {:.6g}\n", name, value);
  fmt::print(stderr, "run is in {}\n", out.string());
  return 0;
}

int check(const RunOptions& options) {
  const Recipe recipe = recipe_of(options);
  const std::unique_ptr<Task> task = make_task(recipe, data_folder(options));
  check_run(recipe, *task);
  fmt::print("{}", to_toml(recipe));
  fmt::print(stderr, "{} clients, {} examples, {} weights: ready to run\n",
             task->population().size(), task->population().examples(), size_of(task->layout()));
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "play a recipe");
  add_recipe_options(*command, *options);
  command->add_option("--out", options->out, "run directory; default run/<recipe>");
  command->add_option("--threads", options->threads, "clients in parallel")
      ->check(whole_number(1, 1024));
  command->add_flag("--resume", options->resume, "go on from the run directory's latest checkpoint");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

void add_check_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("check", "read and check all a run would, print every setting, run nothing");
  add_recipe_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace fedep
