#include "fedep/store/run_keeper.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/optim/optimizer.h"
#include "fedep/store/burn_in.h"

namespace fedep {
namespace {

std::vector<std::string> slot_names(const OptimizerSettings& settings) {
  const auto names = find_optimizer(settings.name).slots(settings);
  return {names.begin(), names.end()};
}

}  // namespace

DiskKeeper::DiskKeeper(const KeptRun& run, RunHeader header, bool resume)
    : run_(run), header_(std::move(header)), resume_(resume), recipe_(to_toml(run.recipe)) {}

void DiskKeeper::share(const SharedBurnIn& burn_in, std::vector<std::int64_t> after) {
  burn_in_ = &burn_in;
  share_after_ = std::move(after);
}

std::optional<ServerState> DiskKeeper::begin() {
  const std::filesystem::path log = run_.directory.log();
  std::optional<ServerState> state;
  if (resume_) state = read_latest();
  if (!state) {
    history_.header = header_;
    begin_log(log, header_);
    log_.emplace(log);
    return state;
  }
  // The log of a run that is over says when it ended, by its own time too: it is not touched.
  if (state->round == rounds()) history_ = read_history(log);
  if (!is_whole(history_, rounds())) {
    history_ = cut_log(log, state->round);
    log_.emplace(log);
  }
  return state;
}

void DiskKeeper::write(const RoundReport& round) {
  history_.rounds.push_back(
      record_of(round.round, round.phase, round.numbers, round.seconds, round.metrics));
  log_->write(history_.rounds.back());
}

bool DiskKeeper::wants(std::int64_t completed, const Phase& phase, bool stop) const {
  return is_shared_after(completed) || is_checkpoint_due(completed, phase, stop);
}

void DiskKeeper::keep(const ServerState& state, const Phase& phase, bool stop) {
  if (is_shared_after(state.round)) burn_in_->keep(state, phase, history_.rounds);
  if (is_checkpoint_due(state.round, phase, stop)) write_checkpoint_of(state, phase);
}

void DiskKeeper::end(std::int64_t rounds, double seconds) {
  if (!log_) return;
  history_.end = {.rounds = rounds, .seconds = seconds};
  log_->write(*history_.end);
}

std::int64_t DiskKeeper::goes_on_from() const { return std::max<std::int64_t>(0, anchor()); }

bool DiskKeeper::is_shared_after(std::int64_t completed) const {
  return burn_in_ != nullptr && std::ranges::count(share_after_, completed) > 0;
}

bool DiskKeeper::is_checkpoint_due(std::int64_t completed, const Phase& phase, bool stop) const {
  const CheckpointSettings& settings = run_.recipe.checkpoint;
  // Without clients' factors, the only checkpoint to go on from in a stateful phase is its beginning.
  const bool phase_ends = !settings.factors && completed == phase.end_round();
  return stop || phase_ends || is_due(settings.every, completed, rounds());
}

bool DiskKeeper::can_go_on_from(std::int64_t round) const {
  if (run_.recipe.checkpoint.factors || round == rounds()) return true;
  const Phase& phase = run_.phases[phase_of(run_.phases, round)];
  return !phase.stateful() || round == phase.first_round;
}

// The newest to go on from; -1 if there is none.
std::int64_t DiskKeeper::anchor() const {
  std::int64_t newest = -1;
  for (const auto& [round, manifest] : manifests_) {
    if (can_go_on_from(round)) newest = round;
  }
  return newest;
}

// The state of the latest checkpoint to go on from; nothing if there is none yet. Later ones go.
std::optional<ServerState> DiskKeeper::read_latest() {
  ServerState latest;
  for (const std::int64_t round : run_.directory.checkpoints()) {
    if (!can_go_on_from(round)) {
      run_.directory.remove_checkpoint(round);
      continue;
    }
    Checkpoint checkpoint = read_one(round);
    manifests_.insert_or_assign(round, std::move(checkpoint.sites));
    latest = std::move(checkpoint.state);
  }
  if (manifests_.empty()) return std::nullopt;
  run_.sites.restore(manifests_.rbegin()->second);
  prune();
  return latest;
}

Checkpoint DiskKeeper::read_one(std::int64_t round) const {
  try {
    return read_checkpoint(run_.directory.checkpoint(round), run_.layout);
  } catch (const InputError& error) {
    if (manifests_.empty()) throw;
    throw InputError(fmt::format("{}; without this file the run goes on from round {}",
                                 error.what(), manifests_.rbegin()->first));
  }
}

void DiskKeeper::write_checkpoint_of(const ServerState& state, const Phase& phase) {
  const bool factors = phase.stateful() && run_.recipe.checkpoint.factors;
  SiteManifest sites = factors ? run_.sites.save() : SiteManifest{};
  write_checkpoint(run_.directory.checkpoint(state.round),
                   {state, sites, recipe_, slot_names(phase.server_optimizer)}, run_.layout);
  manifests_.insert_or_assign(state.round, std::move(sites));
  prune();
}

// The newest so many stay, and the newest to go on from.
void DiskKeeper::prune() {
  const std::int64_t needed = anchor();
  const std::size_t keep = std::size_t(run_.recipe.checkpoint.keep);
  std::size_t excess = manifests_.size() - std::min(manifests_.size(), keep);
  for (auto old = manifests_.begin(); excess > 0; --excess) {
    if (old->first == needed) {
      ++old;
      continue;
    }
    run_.directory.remove_checkpoint(old->first);
    old = manifests_.erase(old);
  }
  std::vector<SiteManifest> kept;
  for (const auto& [round, manifest] : manifests_) kept.push_back(manifest);
  run_.sites.keep_only(kept);
}

}  // namespace fedep
