#include "fedep/store/run_keeper.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/optim/optimizer.h"
#include "fedep/store/burn_in.h"
#include "fedep/store/verdict.h"

namespace fedep {
namespace {

PlayedRound played_round(const RoundRecord& record) {
  const bool missing = record.dropped + record.outside_grid + record.skipped > 0;
  return {.round = record.round,
          .whole = !missing && record.clipped == 0,
          .step_scale = record.step_scale};
}

}  // namespace

DiskKeeper::DiskKeeper(const KeptRun& run, RunHeader header, bool resume)
    : run_(run), header_(std::move(header)), resume_(resume), recipe_(to_toml(run.recipe)) {}

void DiskKeeper::share(const SharedBurnIn& burn_in, std::vector<std::int64_t> after) {
  burn_in_ = &burn_in;
  share_after_ = std::move(after);
}

std::optional<ServerState> DiskKeeper::begin() {
  std::optional<OwnCheckpoint> latest;
  if (resume_) latest = read_latest();
  if (latest) {
    go_on_from(*latest);
    return std::move(latest->checkpoint.state);
  }
  remove_all_but_kept();  // whatever is there is of a start that died, or cannot be gone on from
  history_.header = header_;
  log_.emplace(run_.directory.log(), begin_log(run_.directory.log(), header_));
  return std::nullopt;
}

// Everything is read and found to belong together before anything is changed.
void DiskKeeper::go_on_from(const OwnCheckpoint& own) {
  const Checkpoint& latest = own.checkpoint;
  const std::filesystem::path file = run_.directory.checkpoint(latest.state.round);
  const std::filesystem::path log = run_.directory.log();
  const LogPart part = read_log_part(log, latest.state.round);
  check_own_log(file, own, run_.phases, part);
  check_own_sites(run_.directory, latest);
  run_.sites.restore(latest.sites);
  if (!latest.log && run_.tell) {
    run_.tell(fmt::format(
        "{}: checkpoint of format version 1, which does not say which log and which clients' "
        "factors it was written with; those that are there are taken",
        file.string()));
  }
  // The log of a run that is over says when it ended, by its own time too: it is not touched.
  if (is_over(run_.recipe, run_.phases, latest.state)) {
    history_ = read_history_so_far(log).history;
  }
  if (!is_whole(history_, latest.state.round)) {
    history_ = part.history;
    log_.emplace(log, cut_log(log, part));
  }
  prune();
}

void DiskKeeper::write(const RoundReport& round) {
  RoundRecord record =
      record_of(round.round, round.phase, round.numbers, round.seconds, round.metrics);
  record.start_precision = start_left_after(record);
  log_->write(record);
  history_.rounds.push_back(std::move(record));
}

// Follows the log alone, so that a run that was resumed says the same.
std::optional<double> DiskKeeper::start_left_after(const RoundRecord& record) {
  const Phase& phase = run_.phases[phase_of(run_.phases, record.round)];
  if (run_.population == nullptr || !begins_with_alpha(phase)) return std::nullopt;
  if (!start_ || &start_->phase() != &phase) {
    start_.emplace(phase, *run_.population, run_.recipe.seed);
    for (const RoundRecord& earlier : history_.rounds) {
      if (earlier.round >= phase.first_round) start_->follow(played_round(earlier));
    }
  }
  start_->follow(played_round(record));
  return start_->precision();
}

bool DiskKeeper::wants(std::int64_t completed, const Phase& phase, bool stop) const {
  return is_shared_after(completed) ||
         is_checkpoint_due(run_.recipe, run_.phases, completed, phase, stop);
}

void DiskKeeper::keep(const ServerState& state, const Phase& phase, bool stop) {
  if (is_shared_after(state.round)) burn_in_->keep(state, phase, history_.rounds);
  if (is_checkpoint_due(run_.recipe, run_.phases, state.round, phase, stop)) {
    write_checkpoint_of(state, phase);
  }
}

void DiskKeeper::end(const ServerState& state, double seconds) {
  if (!log_) return;
  const bool infers = !run_.phases[std::size_t(state.phase)].algorithm->point_estimate;
  history_.end = {.rounds = state.round,
                  .seconds = seconds,
                  .improper = infers ? improper_coordinates(state.global) : 0};
  log_->write(*history_.end);
  log_->sync();
}

std::int64_t DiskKeeper::goes_on_from() const { return std::max<std::int64_t>(0, anchor()); }

bool DiskKeeper::is_shared_after(std::int64_t completed) const {
  return burn_in_ != nullptr && std::ranges::count(share_after_, completed) > 0;
}

bool is_checkpoint_due(const Recipe& recipe, const std::vector<Phase>& phases,
                       std::int64_t completed, const Phase& phase, bool stop) {
  const CheckpointSettings& settings = recipe.checkpoint;
  // Without clients' factors, the only checkpoint to go on from in a stateful phase is its beginning.
  const bool phase_ends = !settings.factors && completed == phase.end_round();
  return stop || phase_ends || is_due(settings.every, completed, phases.back().end_round());
}

// Without clients' factors, a stateful phase is gone on with from its beginning only.
bool DiskKeeper::can_go_on_from(const ServerState& state, bool has_factors) const {
  if (has_factors || is_over(run_.recipe, run_.phases, state)) return true;
  const std::int64_t round = state.round;
  const Phase& phase = run_.phases[phase_of(run_.phases, round)];
  return !phase.stateful() || round == phase.first_round;
}

// The newest to go on from; -1 if there is none.
std::int64_t DiskKeeper::anchor() const {
  std::int64_t newest = -1;
  for (const auto& [round, kept] : kept_) {
    if (kept.goes_on) newest = round;
  }
  return newest;
}

// The latest checkpoint to go on from; nothing if there is none yet. Those before it stay, as they
// would have without a stop; rounds behind it are played again.
std::optional<OwnCheckpoint> DiskKeeper::read_latest() {
  std::optional<OwnCheckpoint> latest;
  for (const std::int64_t round : run_.directory.checkpoints()) {
    OwnCheckpoint own = read_one(round);
    const bool goes_on = can_go_on_from(own.checkpoint.state, own.has_factors);
    kept_.insert_or_assign(round, Kept{own.checkpoint.sites, goes_on});
    if (goes_on) latest = std::move(own);
  }
  kept_.erase(kept_.upper_bound(anchor()), kept_.end());
  return latest;
}

OwnCheckpoint DiskKeeper::read_one(std::int64_t round) const {
  try {
    return read_own_checkpoint(run_.directory, round, run_.layout, run_.recipe, run_.phases);
  } catch (const InputError& error) {
    if (anchor() < 0) throw;
    throw InputError(
        fmt::format("{}; without this file the run goes on from round {}", error.what(), anchor()));
  }
}

void DiskKeeper::write_checkpoint_of(const ServerState& state, const Phase& phase) {
  const bool factors = run_.recipe.checkpoint.factors;
  log_->sync();
  const SiteManifest sites = phase.stateful() && factors ? run_.sites.save() : SiteManifest{};
  write_checkpoint(run_.directory.checkpoint(state.round),
                   {state, sites, recipe_, slot_names(phase), log_->mark(),
                    seals_of(run_.directory.sites(), sites)},
                   run_.layout);
  kept_.insert_or_assign(state.round, Kept{sites, can_go_on_from(state, factors)});
  prune();
}

// The newest so many stay, and the newest to go on from.
void DiskKeeper::prune() {
  const std::int64_t needed = anchor();
  const std::size_t keep = std::size_t(run_.recipe.checkpoint.keep);
  std::size_t excess = kept_.size() - std::min(kept_.size(), keep);
  for (auto old = kept_.begin(); excess > 0; --excess) {
    old = old->first == needed ? std::next(old) : kept_.erase(old);
  }
  remove_all_but_kept();
}

void DiskKeeper::remove_all_but_kept() {
  for (const std::int64_t round : run_.directory.checkpoints()) {
    if (!kept_.contains(round)) run_.directory.remove_checkpoint(round);
  }
  std::vector<SiteManifest> named;
  for (const auto& [round, kept] : kept_) named.push_back(kept.sites);
  run_.sites.keep_only(named);
}

}  // namespace fedep
