#include "fedep/store/own_checkpoint.h"

#include <utility>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/run.h"
#include "fedep/round/server_average.h"
#include "fedep/store/same_recipe.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

template <class... Args>
[[noreturn]] void refuse(const fs::path& file, fmt::format_string<Args...> text, Args&&... args) {
  throw InputError(
      fmt::format("{}: {}", file.string(), fmt::format(text, std::forward<Args>(args)...)));
}

void check_rounds(const fs::path& file, const ServerState& state, std::int64_t round,
                  const std::vector<Phase>& phases) {
  const std::int64_t rounds = phases.back().end_round();
  if (state.round != round || round < 1 || round > rounds) {
    refuse(file, "round must be the {} of its name, from 1 to {}, but is {}", round, rounds,
           state.round);
  }
  const auto phase = std::int64_t(phase_of(phases, round - 1));
  if (const std::int64_t begun = state.convergence.begun;
      begun > round || (begun >= 0 && begun < phases[std::size_t(phase)].first_round)) {
    refuse(file, "window must have begun in its phase, but did after round {}", begun);
  }
  if (state.phase != phase) {
    refuse(file, "phase after round {} must be {}, but is {}", round, phase, state.phase);
  }
}

void check_optimizer_of(const fs::path& file, const Checkpoint& checkpoint, const Phase& phase) {
  const std::int64_t steps = checkpoint.state.optimizer.steps;
  if (checkpoint.slots != slot_names(phase) || steps < 0) {
    refuse(file, "optimizer's state must be one of {}, but is another",
           phase.server_optimizer.name);
  }
  const std::size_t scales = checkpoint.state.step_scales.size();
  if (scales != (phase.follows_rounds() ? std::size_t(steps) : 0)) {
    refuse(file, "step_scales must be those of {} steps, but there are {}",
           phase.follows_rounds() ? steps : 0, scales);
  }
}

void check_sites_of(const fs::path& file, const Checkpoint& checkpoint, const Phase& phase) {
  for (const auto& [client, round] : checkpoint.sites) {
    if (phase.stateful() && round >= phase.first_round && round < checkpoint.state.round) continue;
    refuse(file, "sites must be of rounds of its phase, but client {:016x}'s is of round {}",
           client, round);
  }
  const std::size_t clients = without_means(checkpoint.sites).size();
  const bool shares = clients < checkpoint.sites.size();
  if (clients > 0 && checkpoint.state.round < phase.end_round() && shares != phase.shares_means) {
    refuse(
        file,
        "checkpoint.sparse must be {} until this phase is over, but is {}: with one precision for "
        "all weights factors are kept in another way",
        shares, phase.shares_means);
  }
  if (!checkpoint.log) return;
  SiteManifest sealed;
  for (const auto& [client, seal] : checkpoint.seals) sealed.emplace(client, 0);
  SiteManifest named;
  for (const auto& [client, round] : checkpoint.sites) named.emplace(client, 0);
  if (sealed != named) refuse(file, "sites must have a seal each, but have not");
}

// An average of a phase's last rounds begins anew where rounds were added to the phase.
void check_average_of(const fs::path& file, ServerState& state, const Phase& phase) {
  const std::int64_t due = rounds_in_average(phase, state.round);
  if (due == 0) state.average = {};
  if (state.average.rounds == due) return;
  refuse(file,
         "average must be of {} of the phase's last {} rounds, but is of {}: the phase must become "
         "longer by at least {} rounds, or not at all",
         due, phase.average->rounds, state.average.rounds, phase.average->rounds);
}

// Whether somebody's answer changed q, and with it the client's factor.
bool is_answered(const RoundRecord& round) {
  return round.clients > round.dropped + round.outside_grid + round.skipped && round.step_scale > 0;
}

}  // namespace

std::vector<std::string> slot_names(const Phase& phase) {
  const auto names = find_optimizer(phase.server_optimizer.name).slots(phase.server_optimizer);
  return {names.begin(), names.end()};
}

OwnCheckpoint read_own_checkpoint(const RunDirectory& run, std::int64_t round, const Layout& layout,
                                  const Recipe& recipe, const std::vector<Phase>& phases) {
  const fs::path file = run.checkpoint(round);
  OwnCheckpoint own{read_checkpoint(file, layout), true};
  const Recipe written_with = parse_recipe(own.checkpoint.recipe, file.string());
  if (const auto differs = recipe_difference(written_with, recipe)) {
    refuse(file, "checkpoint must be of this run's recipe, but differs: {}", *differs);
  }
  check_rounds(file, own.checkpoint.state, round, phases);
  const Phase& phase = phases[phase_of(phases, round - 1)];
  check_optimizer_of(file, own.checkpoint, phase);
  check_sites_of(file, own.checkpoint, phase);
  check_average_of(file, own.checkpoint.state, phase);
  own.has_factors = written_with.checkpoint.factors;
  return own;
}

void check_own_sites(const RunDirectory& run, const Checkpoint& checkpoint) {
  if (!checkpoint.log) return;
  const SiteSeals there = seals_of(run.sites(), checkpoint.sites);
  for (const auto& [client, seal] : checkpoint.seals) {
    if (there.at(client) == seal) continue;
    refuse(site_file(run.sites(), client, checkpoint.sites.at(client)),
           "factor must be the one that {} was written with, but is another",
           run.checkpoint(checkpoint.state.round).filename().string());
  }
}

void check_own_log(const fs::path& file, const OwnCheckpoint& own, const std::vector<Phase>& phases,
                   const LogPart& log) {
  const Checkpoint& checkpoint = own.checkpoint;
  const std::int64_t round = checkpoint.state.round;
  if (checkpoint.log && *checkpoint.log != log.marks.at(std::size_t(round))) {
    refuse(file,
           "checkpoint must have been written with the log beside it, but was with one of other "
           "rounds, another seed or other data");
  }
  const Phase& phase = phases[phase_of(phases, round - 1)];
  if (!phase.stateful() || !own.has_factors || !checkpoint.sites.empty()) return;
  for (std::int64_t played = phase.first_round; played < round; ++played) {
    if (!is_answered(log.history.rounds[std::size_t(played)])) continue;
    refuse(file, "sites must name the clients that answered in round {}, but name nobody", played);
  }
}

}  // namespace fedep
