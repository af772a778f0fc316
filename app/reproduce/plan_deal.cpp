#include "app/reproduce/plan_deal.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "app/output.h"
#include "app/printable.h"
#include "app/reproduce/finished_run.h"
#include "app/run/interrupt.h"
#include "app/run/run_ranks.h"
#include "app/run/run_recipe.h"
#include "app/whole_number.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/ranks/check_sums.h"
#include "fedep/sim/ranks/same_ranks.h"
#include "fedep/sim/ranks/share_out.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

constexpr int kInterrupted = 130;

std::string text_of(std::span<const Plan> plans) {
  std::string text;
  for (const Plan& plan : plans) text += plan.out.string() + "\n" + to_toml(plan.recipe);
  return text;
}

// About what a run's clients compute, without having looked at their data.
std::int64_t cost_of(const Recipe& recipe) {
  return rounds_of(recipe) * std::max(1, recipe.server.clients_per_round) *
         std::max(1, recipe.client.epochs);
}

// Of each data set and model file one run stands for all: every rank opens its data and plays a visit.
void compare_runs(const std::vector<const Recipe*>& unfinished, const RunRecipeOptions& how) {
  std::set<std::array<std::string, 3>> compared;
  std::set<std::string> told;
  for (const Recipe* const given : unfinished) {
    if (!compared.insert({given->data.name, given->data.path, given->model.path}).second) continue;
    const std::unique_ptr<Task> task = make_task(*given, how.data);
    const Recipe recipe = decide_families(*given, *task).recipe;
    const std::vector<Phase> phases = plan_run(recipe, *task);
    for (const std::string& line :
         compare_run_of_ranks(recipe, phases, *task, fingerprint_of(*task), how)) {
      if (told.insert(line).second) say("{}\n", line);
    }
  }
}

}  // namespace

void add_deal_options(Command& command, DealOptions& options) {
  command
      .add_option("--ranks-per-run", options.ranks_per_run,
                  "where several ranks were started: so many play a run together")
      ->check(whole_number(1));
  add_mixed_cpus_option(command, options.mixed_cpus);
}

PlanDeal::PlanDeal(const RunRecipeOptions& how, std::size_t ranks_per_run,
                   std::span<const Plan> plans)
    : ranks_(how.ranks), ranks_per_run_(ranks_per_run), groups_of_(plans.size(), 0) {
  for (const Plan& plan : plans) {
    names_.push_back(fmt::format("{}, seed {}", plan.row, plan.recipe.seed));
  }
  Ranks* const ranks = how.ranks;
  const std::size_t size = ranks == nullptr ? 1 : ranks->size();
  if (ranks_per_run > size) {
    throw InputError(fmt::format(
        "--ranks-per-run must be at most {}, the number of ranks, but is {}", size, ranks_per_run));
  }
  if (ranks == nullptr) return;
  catch_interrupts(true);
  compare_ranks(*ranks,
                std::vector<Fact>{{"plan of runs", text_of(plans)},
                                  {"--ranks-per-run", fmt::format("{}", ranks_per_run)}},
                false);
  if (!plans.empty()) {  // rank 0 reads what all of them leave
    const std::filesystem::path folder = plans.front().out.parent_path();
    if (ranks->is_first()) make_folder(folder);
    check_shared_directory(*ranks, folder);
  }
  // Others may finish a run before this one has looked: rank 0 has.
  Bytes finished(plans.size());
  if (ranks->is_first()) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      finished[i] = std::byte(is_finished(plans[i].recipe, plans[i].out));
    }
  }
  finished = ranks->broadcast(std::move(finished));
  std::vector<VisitLoad> runs;
  std::vector<const Recipe*> unfinished;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const bool is_over = finished[i] != std::byte(0);
    runs.push_back({.cost = is_over ? 0 : cost_of(plans[i].recipe), .home = std::nullopt});
    if (!is_over) unfinished.push_back(&plans[i].recipe);
  }
  compare_runs(unfinished, how);
  groups_of_ = share_out(runs, {.ranks = (size + ranks_per_run - 1) / ranks_per_run});
  group_number_ = ranks->rank() / ranks_per_run;
  if (ranks_per_run == 1) return;
  group_ = ranks->group(ranks_per_run);
  check_sums(*group_, *ranks);
}

std::string PlanDeal::players(std::size_t plan) const {
  const std::size_t first = groups_of_[plan] * ranks_per_run_;
  const std::size_t end = std::min(first + ranks_per_run_, ranks_ == nullptr ? 1 : ranks_->size());
  if (end == first + 1) return fmt::format("rank {}", first);
  return fmt::format("ranks {} to {}", first, end - 1);
}

PlanDeal::Found PlanDeal::find(const Plan& plan) const {
  Found found;
  if (leads()) {
    found = {.begun = is_begun(plan.out), .finished = is_finished(plan.recipe, plan.out)};
  }
  if (group_ == nullptr) return found;
  return values_of<Found>(group_->broadcast(bytes_of(found))).at(0);
}

bool PlanDeal::play(std::size_t plan, const std::function<bool()>& run) {
  // Of a group the others would wait for this rank for ever.
  if (ranks_ == nullptr || group_ != nullptr) return run();
  try {
    return run();
  } catch (...) {
    failed_[plan] = failure_of(std::current_exception());
    say_anyway("fedep: {}; other runs are left alone\n", printable(failure_line(plan)));
    return true;
  }
}

std::string PlanDeal::failure_line(std::size_t plan) const {
  return fmt::format("rank {} on {}: {}: {}", ranks_->rank(), ranks_->host(), names_[plan],
                     failed_.at(plan).line);
}

std::string PlanDeal::own_failures() const {
  std::string lines;
  for (const auto& [plan, failure] : failed_) {
    lines += fmt::format("{} {} {}\n", plan, failure.exit_code, failure_line(plan));
  }
  return lines;
}

int PlanDeal::wait_for_all(bool stopped) const {
  if (ranks_ == nullptr) return stopped ? kInterrupted : 0;
  ranks_->wait_for_all();
  const std::vector<Bytes> wishes = ranks_->gather(bytes_of(std::byte(stopped)));
  const std::string own = own_failures();
  std::map<std::size_t, Failure> failed;
  for (const Bytes& told : ranks_->gather(bytes_of(std::span<const char>(own)))) {
    const std::vector<char> text = values_of<char>(told);
    std::istringstream lines(std::string(text.begin(), text.end()));
    std::size_t plan = 0;
    Failure failure;
    while (lines >> plan >> failure.exit_code && std::getline(lines >> std::ws, failure.line)) {
      failed[plan] = failure;
    }
  }
  if (speaks()) {
    for (const auto& [plan, failure] : failed) say("fedep: {}\n", printable(failure.line));
  }
  if (std::ranges::count(wishes, Bytes{std::byte(1)}) > 0) return kInterrupted;
  return failed.empty() || !speaks() ? 0 : failed.begin()->second.exit_code;
}

}  // namespace fedep
