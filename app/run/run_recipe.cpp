#include "app/run/run_recipe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "app/posterior/evaluation_file.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/interrupt.h"
#include "app/run/memory_warning.h"
#include "app/run/progress.h"
#include "app/run/run_lock.h"
#include "app/run/run_warnings.h"
#include "app/version.h"
#include "fedep/config/write_recipe.h"
#include "fedep/data/fingerprint.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"
#include "fedep/optim/optimizer.h"
#include "fedep/sim/places.h"
#include "fedep/store/burn_in.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/site_files.h"
#include "fedep/store/tensorboard.h"

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
    Metrics scalars = report.metrics;
    if (report.numbers.steps > 0) {
      scalars.emplace_back("train_loss", report.numbers.loss_sum / double(report.numbers.steps));
    }
    scalars.emplace_back("seconds", report.seconds);
    write(report.round, scalars);
  }

  // Rounds that were played elsewhere.
  void write(std::span<const RoundRecord> rounds) {
    for (const RoundRecord& round : rounds) {
      Metrics scalars = round.scores;
      scalars.emplace_back("train_loss", round.train_loss);
      scalars.emplace_back("seconds", round.seconds);
      write(round.round, scalars);
    }
  }

 private:
  void write(std::int64_t round, const Metrics& scalars) {
    const std::int64_t step = round + 1;  // completed rounds
    const double now = unix_seconds();
    if (!file_) file_.emplace(directory_, step, now);
    file_->write(step, now, scalars);
  }

  std::filesystem::path directory_;
  std::optional<EventFile> file_;
};

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
      place_of(options).own_memory ? device_text(options) : options.device, data, model);
}

// A run whose log was begun before logs said it is not held to anything.
void check_same_data(const std::filesystem::path& log, const std::string& data) {
  if (!std::filesystem::exists(log)) return;
  const History history = read_history(log);
  const std::string before = history.header ? history.header->data : "";
  if (before.empty() || before == data) return;
  throw InputError(
      fmt::format("{}: data must be those that the run began with, {}, but are {}: they were "
                  "changed since, or --data names others",
                  log.parent_path().string(), before, data));
}

constexpr const char* kEvaluation = "evaluation.json";

// Where there are classes; other data have none.
void write_last_evaluation(const RunDirectory& directory, std::int64_t round,
                           const Reliability& reliability) {
  if (reliability.point.empty()) return;
  write_evaluation(directory.path() / kEvaluation, evaluation_json(round, reliability));
}

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

void warn_of_run(const Recipe& recipe, const Task& task, const PlaceRow& place) {
  const std::vector<Phase> phases = phases_of(recipe, task);
  for (const std::string& line : warnings_of(recipe, phases, task)) {
    fmt::print(stderr, "{}\n", line);
  }
  if (place.own_memory) return;
  const std::string memory =
      memory_warning(factor_bytes(recipe, phases, task.population().size(), size_of(task.layout())),
                     available_memory());
  if (!memory.empty()) fmt::print(stderr, "{}\n", memory);
}

RunResult run_recipe(const Recipe& recipe, const RunRecipeOptions& options) {
  const std::unique_ptr<Task> task = make_task(recipe, options.data);
  check_run(recipe, *task);
  const std::vector<Phase> phases = phases_of(recipe, *task);
  const PlaceRow& where = place_of(options);
  where.check(recipe, *task);  // before there is a directory that holds a run
  const std::uint64_t data = task->data() != nullptr ? fingerprint(*task->data()) : 0;
  const std::string data_text = fmt::format("{:016x}", data);
  std::optional<RunLock> lock;
  if (options.resume) {
    lock.emplace(options.out);
    check_same_data(options.out / "log.jsonl", data_text);
  }
  const RunDirectory directory = options.resume ? RunDirectory::reopen(options.out, recipe)
                                                : RunDirectory::create(options.out, recipe);
  if (!lock) lock.emplace(options.out);
  if (const std::string features = task->features(); !features.empty()) {
    replace_file(directory.path() / "features.json", std::as_bytes(std::span(features)));
  }
  // Where factors live elsewhere, what a checkpoint saves of them is in files alone.
  const std::unique_ptr<SiteStore> files =
      where.own_memory || recipe.checkpoint.sites == SiteMemory::disk
          ? make_disk_store(directory.sites())
          : make_memory_store(std::make_unique<SiteFiles>(directory.sites()));
  const std::unique_ptr<Place> place = where.make(recipe, *task, *files, place_options(options));

  Progress progress(isatty(STDERR_FILENO) == 1);
  Events events(directory.path());
  RunHooks hooks{.watch =
                     [&](const RoundReport& report) {
                       events.write(report);
                       progress.show(report);
                     },
                 .stop_requested = interrupt_requested};
  const RunHeader header{.recipe = to_toml(recipe),
                         .seed = recipe.seed,
                         .clients = std::int64_t(task->population().size()),
                         .data = data_text,
                         .version = version_text(),
                         .machine = machine_text(),
                         .device = device_text(options),
                         .remark = where.remark(recipe)};
  if (!header.remark.empty()) fmt::print(stderr, "{}\n", header.remark);
  std::optional<SharedBurnIn> burn_in;
  bool resume = options.resume;
  if (!options.burn_in.empty()) {
    burn_in.emplace(options.burn_in, recipe, origin_of(recipe, data, options), task->layout(),
                    [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
    const bool is_new = directory.checkpoints().empty();
    const std::vector<RoundRecord> rounds = burn_in->adopt(directory, header);
    events.write(rounds);
    resume |= !rounds.empty();
    // What goes on from a checkpoint of its own may have come there on another device, by another
    // program or with other scores: it is not kept for others.
    if (is_new || !rounds.empty()) hooks.keep_after = options.keep_after;
    hooks.keep = [&](const ServerState& state, const Phase& phase,
                     std::span<const RoundRecord> played) { burn_in->keep(state, phase, played); };
  }
  warn_of_run(recipe, *task, where);
  catch_interrupts();
  RunResult result =
      play_run({recipe, phases, task->population(), task->layout(), *place, &directory},
               task->initial_weights(), header, hooks, resume);
  progress.close();
  const RunSummary summary = summary_of(result.history);
  const std::string refusals = refusals_text(summary);
  if (!refusals.empty()) fmt::print(stderr, "{}\n", refusals);
  if (result.end == RunEnd::done) {
    write_last_evaluation(directory, result.state.round, place->reliability());
    if (task->data() != nullptr && !often_refused(summary)) {
      const std::string doubt =
          noise_doubt(result.metrics, recipe.model.noise,
                      held_out_numbers(*task->data(), recipe.evaluate.examples));
      if (!doubt.empty()) fmt::print(stderr, "{}\n", doubt);
    }
  }
  return result;
}

std::string stop_text(const RunResult& result, std::string_view how) {
  const std::int64_t round = result.state.round;
  std::string text = fmt::format("stopped after round {}; {}", round, how);
  if (result.goes_on_from < round) {
    text += fmt::format(" (from round {}: checkpoint.factors = false)", result.goes_on_from);
  }
  return text;
}

bool lacks_evaluation(const std::filesystem::path& run) {
  if (std::filesystem::exists(run / kEvaluation)) return false;
  const History history = read_history(run / "log.jsonl");
  const Metrics scores = last_metrics(history.rounds);
  return summary_of(history).finished &&
         std::ranges::any_of(scores, [](const auto& score) { return score.first == "ece"; });
}

void restore_evaluation(const Recipe& recipe, const RunRecipeOptions& options) {
  const RunDirectory directory = RunDirectory::reopen(options.out, recipe);
  const std::unique_ptr<Task> task = make_task(recipe, options.data);
  const std::int64_t rounds = rounds_of(recipe);
  const ServerState state = read_checkpoint(directory.checkpoint(rounds), task->layout()).state;
  const std::unique_ptr<SiteStore> no_sites = make_memory_store();  // no round follows
  const std::unique_ptr<Place> place =
      place_of(options).make(recipe, *task, *no_sites, place_options(options));
  place->evaluate(state, true);
  write_last_evaluation(directory, rounds, place->reliability());
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

const PlaceRow& place_of(const RunRecipeOptions& options) {
  return find_place(options.device, options.threads);
}

PlaceOptions place_options(const RunRecipeOptions& options) {
  return {.threads = options.threads, .precision = find_precision(options.precision)};
}

void check_device(const std::string& device, const std::string& precision) {
  find_precision(precision);
  if (const std::string why = find_place(device, 1).problem(); !why.empty()) throw InputError(why);
}

std::string device_text(const RunRecipeOptions& options) {
  return place_of(options).text(place_options(options));
}

}  // namespace fedep
