#include "fedep/store/run.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "fedep/config/write_recipe.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/run_log.h"

namespace fedep {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Whether something that happens every so many rounds happens after `completed` of `rounds`.
bool due(int every, std::int64_t completed, std::int64_t rounds) {
  return completed == rounds || (every > 0 && completed % every == 0);
}

std::vector<std::string> slot_names(const OptimizerSettings& settings) {
  const auto names = find_optimizer(settings.name).slots(settings);
  return {names.begin(), names.end()};
}

std::int64_t phase_of(const std::vector<Phase>& phases, std::int64_t round) {
  std::int64_t index = 0;
  while (round >= phases[std::size_t(index)].end_round()) ++index;
  return index;
}

// Writes checkpoints, prunes old ones, and brings a run back from the latest that it can go on from.
class Keeper {
 public:
  explicit Keeper(const RunParts& parts) : parts_(parts), recipe_(to_toml(parts.recipe)) {}

  void write(const ServerState& state, const Phase& phase) {
    if (parts_.directory == nullptr) return;
    const bool factors = phase.stateful() && parts_.recipe.checkpoint.factors;
    SiteManifest sites = factors ? parts_.place.sites().save() : SiteManifest{};
    write_checkpoint(parts_.directory->checkpoint(state.round),
                     {state, sites, recipe_, slot_names(phase.server_optimizer)}, parts_.layout);
    manifests_.insert_or_assign(state.round, std::move(sites));
    prune();
  }

  // Without clients' factors, the only checkpoint to go on from in a stateful phase is its beginning.
  bool due_at_end_of(const Phase& phase, std::int64_t completed) const {
    return !parts_.recipe.checkpoint.factors && completed == phase.end_round();
  }

  // The state of the latest checkpoint to go on from; nothing if there is none yet. Later ones go.
  std::optional<ServerState> read() {
    ServerState latest;
    for (const std::int64_t round : parts_.directory->checkpoints()) {
      if (!can_go_on_from(round)) {
        parts_.directory->remove_checkpoint(round);
        continue;
      }
      Checkpoint checkpoint = read_one(round);
      manifests_.insert_or_assign(round, std::move(checkpoint.sites));
      latest = std::move(checkpoint.state);
    }
    if (manifests_.empty()) return std::nullopt;
    parts_.place.sites().restore(manifests_.rbegin()->second);
    prune();
    return latest;
  }

  // Where read() would begin.
  std::int64_t goes_on_from() const { return std::max<std::int64_t>(0, anchor()); }

 private:
  Checkpoint read_one(std::int64_t round) const {
    try {
      return read_checkpoint(parts_.directory->checkpoint(round), parts_.layout);
    } catch (const InputError& error) {
      if (manifests_.empty()) throw;
      throw InputError(fmt::format("{}; without this file the run goes on from round {}",
                                   error.what(), manifests_.rbegin()->first));
    }
  }

  bool can_go_on_from(std::int64_t round) const {
    if (parts_.recipe.checkpoint.factors || round == parts_.phases.back().end_round()) return true;
    const Phase& phase = parts_.phases[std::size_t(phase_of(parts_.phases, round))];
    return !phase.stateful() || round == phase.first_round;
  }

  // The newest to go on from; -1 if there is none.
  std::int64_t anchor() const {
    std::int64_t newest = -1;
    for (const auto& [round, manifest] : manifests_) {
      if (can_go_on_from(round)) newest = round;
    }
    return newest;
  }

  // The newest so many stay, and the newest to go on from.
  void prune() {
    const std::int64_t needed = anchor();
    const std::size_t keep = std::size_t(parts_.recipe.checkpoint.keep);
    std::size_t excess = manifests_.size() - std::min(manifests_.size(), keep);
    for (auto old = manifests_.begin(); excess > 0; --excess) {
      if (old->first == needed) {
        ++old;
        continue;
      }
      parts_.directory->remove_checkpoint(old->first);
      old = manifests_.erase(old);
    }
    std::vector<SiteManifest> kept;
    for (const auto& [round, manifest] : manifests_) kept.push_back(manifest);
    parts_.place.sites().keep_only(kept);
  }

  const RunParts& parts_;
  std::string recipe_;
  std::map<std::int64_t, SiteManifest> manifests_;  // of the checkpoints that are kept
};

}  // namespace

RunResult play_run(const RunParts& parts, HostVector<float> initial, const RunHeader& header,
                   const RunHooks& hooks, bool resume) {
  check_same_size("play_run", "initial weights", size_of(parts.layout), initial.size());
  Keeper keeper(parts);
  RunResult result;
  result.state = initial_server_state(parts.recipe.server, std::move(initial));
  const std::int64_t rounds = parts.phases.back().end_round();
  History& history = result.history;
  history.header = header;
  std::optional<RunLog> log;
  if (parts.directory != nullptr) {
    const std::filesystem::path file = parts.directory->log();
    std::optional<ServerState> saved;
    if (resume) saved = keeper.read();
    if (saved) {
      result.state = std::move(*saved);
      history = read_history(file);
    } else {
      begin_log(file, header);
    }
    // The log of a run that is over says when it ended, by its own time too: it is not touched.
    if (result.state.round < rounds || !is_whole(history, rounds)) {
      if (saved) history = cut_log(file, result.state.round);
      log.emplace(file);
    }
  }
  ServerState& state = result.state;
  // A run that was over already still says how it ended.
  if (state.round == rounds) result.metrics = parts.place.evaluate(state, true);
  const auto start = std::chrono::steady_clock::now();
  while (state.round < rounds) {
    const std::int64_t index = phase_of(parts.phases, state.round);
    const Phase& phase = parts.phases[std::size_t(index)];
    if (state.phase != index) {
      parts.place.bring_home(state);
      state = begin_phase(std::move(state), phase, index, parts.population);
      parts.place.sites().clear();
    }
    const auto round_start = std::chrono::steady_clock::now();
    RoundReport report{.round = state.round,
                       .rounds = rounds,
                       .phase = phase.algorithm->name,
                       .numbers = {},
                       .seconds = 0,
                       .metrics = {}};
    report.numbers = parts.place.play(state, phase);
    const bool stop = hooks.stop_requested && hooks.stop_requested();
    if (due(parts.recipe.evaluate.every, state.round, rounds)) {
      report.metrics = parts.place.evaluate(state, state.round == rounds);
      result.metrics = report.metrics;
    }
    report.seconds = seconds_since(round_start);
    ++result.played;
    history.rounds.push_back(
        record_of(report.round, report.phase, report.numbers, report.seconds, report.metrics));
    if (log) log->write(history.rounds.back());
    if (hooks.keep && std::ranges::count(hooks.keep_after, state.round) > 0) {
      parts.place.bring_home(state);
      hooks.keep(state, phase, history.rounds);
    }
    if (stop || due(parts.recipe.checkpoint.every, state.round, rounds) ||
        keeper.due_at_end_of(phase, state.round)) {
      parts.place.bring_home(state);
      keeper.write(state, phase);
    }
    if (hooks.watch) hooks.watch(report);
    if (stop && state.round < rounds) {
      parts.place.bring_home(state);
      result.end = RunEnd::interrupted;
      result.goes_on_from = keeper.goes_on_from();
      return result;
    }
  }
  parts.place.bring_home(state);
  if (!history.end) history.end = {.rounds = state.round, .seconds = seconds_since(start)};
  if (log) log->write(*history.end);
  return result;
}

}  // namespace fedep
