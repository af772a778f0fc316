#include "app/run/live_report.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "app/posterior/told_spread.h"
#include "app/report/report_build.h"
#include "fedep/message/error.h"
#include "fedep/page/report/report.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

// A run that is busy should not read gigabytes for a picture.
constexpr std::uintmax_t kLargestLiveCheckpoint = std::uintmax_t(1) << 28;
// Who was asked in so many rounds is counted at a time; of a long run that is resumed, later.
constexpr std::int64_t kRoundsCountedAtOnce = 20'000;

std::string checkpoint_names(const fs::path& run) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-") && entry.path().extension() == ".safetensors") {
      names.insert(name);
    }
  }
  std::string all;
  for (const std::string& name : names) all += name + "/";
  return all;
}

}  // namespace

void LiveReport::begin(const Recipe& recipe, const RunHeader& header) {
  const std::lock_guard lock(mutex_);
  recipe_ = recipe;
  header_ = header;
}

void LiveReport::follow(std::span<const RoundRecord> rounds) {
  const std::lock_guard lock(mutex_);
  const auto known = std::min(rounds.size(), std::size_t(rounds_.played()));
  for (const RoundRecord& round : rounds.subspan(known)) {
    rounds_.add(round);
    counters_.add(round);
  }
}

void LiveReport::finish(const Verdict& verdict) {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  verdict_ = verdict;
}

std::optional<RunRecord> LiveReport::record_so_far() const {
  const std::lock_guard lock(mutex_);
  if (!recipe_) return std::nullopt;
  RunRecord run;
  run.name = names_of({run_}).front();
  run.recipe = *recipe_;
  run.history.header = header_;
  run.history.rounds = rounds_.records();
  run.status = finished_ ? RunStatus::finished : RunStatus::running;
  if (finished_) run.verdict = verdict_;
  run.so_far = RunSoFar{.played = rounds_.played(),
                        .rounds_each = rounds_.each(),
                        .counters = counters_,
                        .participation = std::nullopt};
  return run;
}

void LiveReport::count_participation(RunRecord& run) {
  if (!participation_) {
    participation_.emplace(run.recipe.seed, std::size_t(run.history.header->clients),
                           std::size_t(run.recipe.server.clients_per_round));
  }
  participation_->count_until(run.so_far->played, kRoundsCountedAtOnce);
  if (participation_->counted() == run.so_far->played) run.so_far->participation = participation_;
}

void LiveReport::read_posterior_of(RunRecord& run) {
  if (std::string names = checkpoint_names(run_); names != checkpoints_) {
    checkpoints_ = std::move(names);
    posterior_.reset();
    posterior_ =
        only_inferred(run_, &run.history, read_posterior(run_, run.recipe, kLargestLiveCheckpoint));
  }
  run.posterior = posterior_;
}

std::string LiveReport::data() {
  std::optional<RunRecord> run = record_so_far();
  if (!run) {
    return script_json(build_report(
        {}, {.notices = {"not begun yet: the recipe's data are being read"}, .live = true}));
  }
  count_participation(*run);
  try {
    read_posterior_of(*run);
    if (run->status == RunStatus::finished) run->evaluation = read_evaluation(run_);
  } catch (const std::exception&) {
    // A file that went while it was read, or is damaged: the report of the finished run will say so.
  }
  const bool all_rounds = run->so_far->rounds_each == 1;
  return script_json(
      build_report(std::vector{std::move(*run)}, {.live = true, .tables = all_rounds}));
}

}  // namespace fedep
