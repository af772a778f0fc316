#include "app/run/run_recipe.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/ranges.h>
#include <unistd.h>

#include "app/output.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/client_list.h"
#include "app/run/interrupt.h"
#include "app/run/last_curvature.h"
#include "app/run/last_evaluation.h"
#include "app/run/last_intercepts.h"
#include "app/run/live_report.h"
#include "app/run/memory_warning.h"
#include "app/run/progress.h"
#include "app/run/run_events.h"
#include "app/run/run_home.h"
#include "app/run/run_lock.h"
#include "app/run/run_ranks.h"
#include "app/run/run_warnings.h"
#include "app/run/size_plan.h"
#include "app/version.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"
#include "fedep/data/fingerprint.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"
#include "fedep/page/report/factor_gap_text.h"
#include "fedep/sim/coefficient_prior.h"
#include "fedep/sim/cpu_only.h"
#include "fedep/sim/curvature.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/sim/sparse/sparse_factors.h"
#include "fedep/store/burn_in.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/run_keeper.h"

namespace fedep {
namespace {

void tell(std::string_view line) {
  if (!line.empty()) say("{}\n", line);
}

// What is worth knowing of the place and, where values of a table were suspected, of the data.
std::string remark_of(const Recipe& recipe, const Task& task, const RunRecipeOptions& options) {
  std::vector<std::string> remarks;
  if (std::string remark = place_of(options).remark(recipe); !remark.empty()) {
    remarks.push_back(std::move(remark));
  }
  const Dataset* const data = task.data();
  if (data != nullptr && data->info().table) {
    const std::vector<std::string>& suspected = data->info().table->suspected;
    remarks.insert(remarks.end(), suspected.begin(), suspected.end());
  }
  return fmt::format("{}", fmt::join(remarks, "; "));
}

RunHeader header_of(const Recipe& recipe, const Task& task, std::uint64_t data,
                    const RunRecipeOptions& options) {
  return {.recipe = to_toml(recipe),
          .seed = recipe.seed,
          .clients = std::int64_t(task.population().size()),
          .data = fmt::format("{:016x}", data),
          .version = version_text(),
          .machine = machine_text(),
          .device = device_text(options),
          .remark = remark_of(recipe, task, options)};
}

// Said, and written into the log.
void add_remarks(RunHeader& header, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    tell(line);
    header.remark += (header.remark.empty() ? "" : "; ") + line;
  }
}

// The directory that is this process's alone until the end.
struct OpenRun {
  RunLock lock;
  RunDirectory directory;
};

OpenRun open_run(const Recipe& recipe, const RunRecipeOptions& options, const std::string& data) {
  // Whoever has the lock first decides what is in the directory; a recipe is written under it.
  if (!options.resume) make_folder(options.out);
  RunLock lock(options.out);
  return {std::move(lock), options.resume ? RunDirectory::reopen(options.out, recipe, data)
                                          : RunDirectory::create(options.out, recipe)};
}

// A run that is over is scored no more.
std::string scores_stay(const Recipe& recipe, const RunRecipeOptions& options) {
  const std::filesystem::path file = options.out / "recipe.toml", log = options.out / "log.jsonl";
  if (!options.resume || !std::filesystem::exists(file) || !std::filesystem::exists(log)) return {};
  if (read_recipe(file).evaluate == recipe.evaluate || !is_finished(recipe, read_history(log))) {
    return {};
  }
  return fmt::format(
      "{}: the run is over and keeps the scores of its own [evaluate]; fedep evaluate makes others",
      options.out.string());
}

// How rows of a table that come later are prepared, and who its clients are.
void write_features(const RunDirectory& directory, const Task& task) {
  const std::string features = task.features();
  if (features.empty()) return;
  replace_file(directory.path() / "features.json", std::as_bytes(std::span(features)));
  const std::string clients = clients_json(task.population());
  replace_file(directory.path() / "clients.json", std::as_bytes(std::span(clients)));
}

// What a round's bits depend on beside the recipe, in lines: also this program's own bytes, since
// versions do not change with every change of its arithmetic. Threads are not part of it.
std::string origin_of(const Recipe& recipe, std::uint64_t data, const RunRecipeOptions& options) {
  const std::uint64_t model = std::filesystem::is_regular_file(recipe.model.path)
                                  ? fingerprint(read_file(recipe.model.path))
                                  : 0;
  const std::uint64_t program = fingerprint(read_file("/proc/self/exe"));
  return fmt::format(
      "fedep {}, {}\nprogram {:016x}\nmachine {}\ndevice {}\ndata {:016x}\nmodel {:016x}\n",
      version_text(), build_text(), program, machine_text(),
      place_of(options).own_memory ? one_device_text(options) : options.device, data, model);
}

std::optional<SharedBurnIn> find_burn_in(const Recipe& recipe, std::uint64_t data,
                                         const RunRecipeOptions& options, const Layout& layout) {
  if (options.burn_in.empty()) return std::nullopt;
  return SharedBurnIn(options.burn_in, recipe, origin_of(recipe, data, options), layout, tell);
}

// How q and its factors stand to one another, where that is worth a line.
std::string factors_text(const Recipe& recipe, Place& place,
                         const std::vector<RoundRecord>& rounds) {
  if (const auto round = last_factor_gap(rounds)) return factor_gap_text(recipe, *round);
  const bool stateful = std::ranges::any_of(recipe.phases, [](const PhaseSettings& phase) {
    return remembers(phase.cavity.value_or(find_algorithm(phase.algorithm).cavity));
  });
  if (!stateful || place.sites().in_memory()) return {};
  return "clients' factors are on disk (checkpoint.sites), so q was not held against their product";
}

// What is said and written once no round follows.
void finish_run(const Recipe& recipe, const Task& task, Place& place, const RunDirectory& directory,
                const RecipeRun& run) {
  const RunSummary summary = summary_of(run.history);
  tell(refusals_text(summary));
  tell(factors_text(recipe, place, run.history.rounds));
  if (run.result.end != RunEnd::done) return;
  write_last_evaluation(directory.path(), run.result.state.round, place.reliability(),
                        risk_at_mean(recipe, task, run.result.state));
  if (task.data() == nullptr || often_refused(summary) || recipe.model.estimate_noise) return;
  tell(noise_doubt(run.result.metrics, recipe.model.noise,
                   held_out_numbers(*task.data(), recipe.evaluate.examples)));
}

// A run that goes on keeps the families it began with, and the beginning of its factors.
Recipe with_families(const Recipe& given, const Task& task, const RunRecipeOptions& options) {
  Recipe decided = decide_families(given, task).recipe;
  const std::filesystem::path file = options.out / "recipe.toml";
  if (!options.resume || !std::filesystem::exists(file)) return decided;
  const Recipe there = read_recipe(file);
  return decided_as_before(there, with_factor_starts_of(there, given), std::move(decided));
}

}  // namespace

void check_place(const PlaceRow& place, const Recipe& recipe, const Task& task) {
  if (place.own_memory) {
    refuse_full_family(recipe, place.device);
    refuse_cpu_only(recipe, place.device);
    refuse_sparse_factors(recipe, place.device);
  }
  if (place.own_memory && !recipe.priors.empty()) {
    throw InputError(fmt::format(
        "[[prior]]: priors of single coefficients must be on the CPU, but the device is {}",
        place.device));
  }
  place.check(recipe, task);
}

std::vector<Phase> plan_run(const Recipe& recipe, const Task& task) {
  const std::size_t clients = task.population().size();
  if (std::size_t(recipe.server.clients_per_round) > clients) {
    const std::string lost = task.data() == nullptr ? "" : task.data()->info().first_skipped;
    throw InputError(fmt::format(
        "server.clients_per_round must be at most {}, the number of clients, but is {}{}{}",
        clients, recipe.server.clients_per_round,
        lost.empty() ? "" : "; of the records left out the first: ", lost));
  }
  std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  mark_shared_means(recipe, phases);
  check_optimizer(recipe.client.optimizer);  // also where this task's clients have none to run
  check_prior_families(recipe, phases);
  check_clips(recipe, phases, task.population());
  check_curvature(recipe, task);
  check_sparse_factors(recipe, phases, task);
  return phases;
}

std::uint64_t fingerprint_of(const Task& task) {
  return task.data() != nullptr ? fingerprint(*task.data()) : 0;
}

void warn_of_run(const Recipe& recipe, const std::vector<Phase>& phases, const Task& task,
                 const PlaceRow& place) {
  for (const std::string& line : warnings_of(recipe, phases, task)) tell(line);
  if (place.own_memory) return;
  tell(memory_warning(
      factor_bytes(recipe, phases, task.population().size(), weights_touched(recipe, phases, task)),
      mean_bytes(phases, size_of(task.layout())), available_memory()));
}

RecipeRun run_recipe(const Recipe& given, const RunRecipeOptions& options) {
  // A launcher's signal must not end one rank alone, whatever it is doing.
  if (options.ranks != nullptr) catch_interrupts(true);
  check_scratch(options.scratch);
  check_data_size(given.data, total_memory());
  const std::unique_ptr<Task> task = make_task(given, options.data);
  const Recipe recipe = with_families(given, *task, options);
  const std::vector<Phase> phases = plan_run(recipe, *task);
  check_sizes(plan_sizes(recipe, phases, *task), total_memory());
  const PlaceRow& where = place_of(options);
  check_place(where, recipe, *task);  // before there is a directory that holds a run

  const std::uint64_t data = fingerprint_of(*task);
  RunHeader header = header_of(recipe, *task, data, options);
  if (options.ranks != nullptr) {
    add_remarks(header, compare_run_of_ranks(recipe, phases, *task, data, options));
    if (!options.ranks->is_first())
      return {.result = follow_run(recipe, phases, *task, options), .history = {}};
  }
  tell(scores_stay(recipe, options));
  const OpenRun run = open_run(recipe, options, header.data);
  if (options.ranks != nullptr) {
    check_shared_directory(*options.ranks, options.out);
  } else {
    clear_shared_directory(options.out);
  }
  write_features(run.directory, *task);
  const std::unique_ptr<SiteStore> home =
      make_home(recipe, run.directory, where, size_of(task->layout()), options.scratch);
  const std::unique_ptr<Place> place = where.make(recipe, *task, *home, place_options(options));
  tell(where.remark(recipe));
  tell(scratch_remark(recipe, where, options.scratch));

  const bool is_new = run.directory.checkpoints().empty();
  const std::optional<SharedBurnIn> burn_in = find_burn_in(recipe, data, options, task->layout());
  std::vector<RoundRecord> adopted;
  if (burn_in) adopted = burn_in->adopt(run.directory, header);
  DiskKeeper keeper(
      {recipe, phases, task->layout(), place->sites(), run.directory, tell, &task->population()},
      header, options.resume || !adopted.empty());
  // What goes on from a checkpoint of its own may have come there on another device, by another
  // program or with other scores: it is not kept for others.
  if (burn_in && (is_new || !adopted.empty())) keeper.share(*burn_in, options.keep_after);

  warn_of_run(recipe, phases, *task, where);
  catch_interrupts(options.ranks != nullptr);
  if (options.live != nullptr) options.live->begin(recipe, header);
  Progress progress(isatty(STDERR_FILENO) == 1);
  RunEvents events(run.directory.path());
  events.write(adopted);
  const auto watch = [&](const RoundReport& report) {
    events.write(report);
    progress.show(report);
    if (options.live != nullptr) options.live->follow(keeper.history().rounds);
  };
  const RunParts parts{recipe, phases, task->population(), task->layout(), *place, task->priors()};
  std::unique_ptr<RunKeeper> in_step;
  if (options.ranks != nullptr) {
    in_step = make_rank_keeper(parts, run.directory, *options.ranks, &keeper);
  }
  RecipeRun played{.result = play_run(parts, task->initial_weights(),
                                      {.watch = watch, .stop_requested = interrupt_requested},
                                      in_step ? in_step.get() : &keeper),
                   .history = {}};
  played.history = keeper.history();
  played.verdict = verdict_of(recipe, played.history);
  progress.close();
  if (played.result.end == RunEnd::done &&
      !finish_curvature(recipe, *task, run.directory, played.result.state, interrupt_requested)) {
    played.result.end = RunEnd::interrupted;
    played.result.goes_on_from = played.result.state.round;
  }
  keep_intercepts(recipe, *task, run.directory, played.result.state);
  finish_run(recipe, *task, *place, run.directory, played);
  if (options.live != nullptr) {
    options.live->follow(played.history.rounds);
    if (played.result.end == RunEnd::done) options.live->finish(played.verdict);
  }
  if (options.ranks != nullptr) end_together(*options.ranks, played.result.end);
  return played;
}

std::string stop_text(const RunResult& result, std::string_view how) {
  const std::int64_t round = result.state.round;
  std::string text = fmt::format("stopped after round {}; {}", round, how);
  if (result.goes_on_from < round) {
    text += fmt::format(" (from round {}: checkpoint.factors = false)", result.goes_on_from);
  }
  return text;
}

Recipe shortened(Recipe recipe, std::int64_t rounds) {
  std::vector<PhaseSettings> phases;
  for (PhaseSettings phase : recipe.phases) {
    if (rounds <= 0) break;
    phase.rounds = int(std::min<std::int64_t>(rounds, phase.rounds));
    rounds -= phase.rounds;
    phases.push_back(std::move(phase));
  }
  if (phases.size() < recipe.phases.size()) recipe.stop.converged = 0;  // it is the last phase's
  recipe.phases = std::move(phases);
  return recipe;
}

std::int64_t rounds_of(const Recipe& recipe) {
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return rounds;
}

}  // namespace fedep
