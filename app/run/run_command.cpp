#include "app/run/run_command.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/output.h"
#include "app/run/run_recipe.h"
#include "app/run/run_warnings.h"
#include "app/run/size_plan.h"
#include "app/run/watch_server.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/sim/coefficient_prior.h"
#include "fedep/sim/family_choice.h"

namespace fedep {
namespace {

struct RunOptions {
  std::string recipe;
  std::string out;
  std::string data;
  std::string device = "cpu";
  std::string precision = "tf32";
  std::size_t threads = 1;
  std::optional<std::int64_t> rounds;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> overrides;
  bool resume = false;
  std::optional<int> watch;  // port
  bool settings = false;     // only print them
  bool mixed_cpus = false;
  std::string scratch;
};

void add_recipe_options(Command& command, RunOptions& options) {
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
  const Recipe recipe = read_recipe(options.recipe, overrides);
  return options.rounds ? shortened(recipe, *options.rounds) : recipe;
}

// run/table2/fed_ep_i for …/recipe/table2/fed_ep_i.toml; run/first for any other first.toml.
std::filesystem::path default_out(const RunOptions& options) {
  namespace fs = std::filesystem;
  const fs::path recipe = fs::absolute(options.recipe).lexically_normal();
  fs::path below;
  bool is_below = false;
  for (const fs::path& part : recipe.parent_path()) {
    if (is_below) below /= part;
    is_below |= part == "recipe";
  }
  return "run" / below / recipe.stem();
}

int run(const RunOptions& options, Ranks* ranks) {
  check_device(options.device, options.precision, ranks != nullptr);
  const std::filesystem::path out =
      options.out.empty() ? default_out(options) : std::filesystem::path(options.out);
  std::optional<WatchServer> watch;
  const bool first = ranks == nullptr || ranks->is_first();
  if (options.watch && first) {
    watch.emplace(out, *options.watch);
    say("watch the run at {}\n", watch->url());
  }
  LiveReport* const live = watch ? &watch->report() : nullptr;
  const RecipeRun played = run_recipe(recipe_of(options), {.out = out,
                                                           .data = data_folder(options.data),
                                                           .threads = options.threads,
                                                           .resume = options.resume,
                                                           .device = options.device,
                                                           .precision = options.precision,
                                                           .ranks = ranks,
                                                           .mixed_cpus = options.mixed_cpus,
                                                           .scratch = options.scratch,
                                                           .live = live});
  if (!first) return 0;  // rank 0 answers for all
  const RunResult& result = played.result;
  if (result.end == RunEnd::interrupted) {
    say("{}\n", stop_text(result, "go on with --resume"));
    return 130;
  }
  for (const auto& [name, value] : result.metrics) {
    if (!std::isnan(value)) print_text("{} {:.6g}\n", name, value);
  }
  if (watch) watch->finish();
  say("run is in {}\n", out.string());
  // Last, so that nobody overlooks it.
  if (const std::string text = trust_text(played.verdict); !text.empty()) say("{}\n", text);
  return exit_code_of(played.verdict);
}

int check(const RunOptions& options) {
  const Recipe given = recipe_of(options);
  if (options.settings) {
    print_text("{}", to_toml(given));
    return 0;
  }
  check_data_size(given.data, total_memory());
  const std::unique_ptr<Task> task = make_task(given, data_folder(options.data));
  const FamilyDecision families = decide_families(given, *task);
  const Recipe& recipe = families.recipe;
  const std::vector<Phase> phases = plan_run(recipe, *task);
  const SizePlan sizes = plan_sizes(recipe, phases, *task);
  check_sizes(sizes, total_memory());
  print_text("{}", to_toml(recipe));
  for (const std::string& reason : families.reasons) say("{}\n", reason);
  if (const Dataset* const data = task->data(); data != nullptr) {
    for (const std::string& prior : told_priors(recipe, data->info())) {
      say("prior, per standard deviation of a feature: {}\n", prior);
    }
  }
  for (const std::string& line : momentum_remarks(phases, task->population().size())) {
    say("{}\n", line);
  }
  warn_of_run(recipe, phases, *task, find_place(options.device, options.threads));
  if (const std::string steps = visit_steps_text(recipe, phases, *task); !steps.empty()) {
    say("{}\n", steps);
  }
  say("a run needs {}\n", to_text(sizes));
  say("{} clients, {} examples, {} weights: ready to run\n", task->population().size(),
      task->population().examples(), size_of(task->layout()));
  return 0;
}

}  // namespace

void add_run_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks) {
  auto options = std::make_shared<RunOptions>();
  Command* command = app.add_subcommand("run", "play a recipe");
  add_recipe_options(*command, *options);
  command->add_option("--out", options->out, "run directory; default run/ and the recipe's name");
  command->add_option("--device", options->device, "where clients run: cpu or cuda");
  command->add_option("--precision", options->precision,
                      "products on a GPU: tf32, or float32 for agreement with the CPU");
  command->add_option("--threads", options->threads, "clients in parallel")
      ->check(whole_number(1, 1024));
  command->add_flag("--resume", options->resume,
                    "go on from the run directory's latest checkpoint");
  command
      ->add_option("--watch", options->watch,
                   "show the run while it goes on, at this port of 127.0.0.1; 0: a free one")
      ->type_name("PORT")
      ->check(whole_number(0, 65535));
  add_scratch_option(*command, options->scratch);
  add_mixed_cpus_option(*command, options->mixed_cpus);
  command->callback([options, &exit_code, &ranks] { exit_code = run(*options, ranks.get()); });
}

void add_check_command(Command& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  Command* command = app.add_subcommand(
      "check", "read and check all a run would, print every setting, run nothing");
  add_recipe_options(*command, *options);
  command->add_flag("--settings", options->settings,
                    "only print every setting; no data are opened");
  command->callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace fedep
