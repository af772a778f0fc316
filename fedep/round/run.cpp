#include "fedep/round/run.h"

#include <chrono>
#include <optional>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/round/diagnosis/convergence.h"
#include "fedep/round/diagnosis/factor_gap.h"

namespace fedep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Begins the phase that the next round belongs to, and the window that it belongs to.
void prepare_round(const RunParts& parts, std::size_t index, ServerState& state) {
  const Phase& phase = parts.phases[index];
  if (state.phase != std::int64_t(index)) {
    parts.place.bring_home(state);
    state = begin_phase(std::move(state), phase, std::int64_t(index), parts.population);
    parts.place.sites().clear();
  }
  // A window begins where the last one ended, with a phase, or with what a checkpoint left: at home.
  if (is_measured(phase)) begin_window(state);
}

WindowNumbers follow_window(const RunParts& parts, const Phase& phase, const RoundNumbers& numbers,
                            ServerState& state) {
  if (!is_measured(phase)) return {};
  const std::int64_t begun = state.convergence.begun;
  const std::int64_t begins =
      begun + 1 == state.round ? window_length(phase, parts.population.size(), begun) : 0;
  WindowNumbers window;
  count_round(state, numbers);
  if (window_is_over(state, phase, parts.population.size())) {
    parts.place.bring_home(state);
    window = end_window(state, phase);
  }
  window.begins = begins;
  return window;
}

// q is held against the product of its factors at a phase's end and, where they are read anyway, at
// checkpoints; not where each of them would have to come from a disk. It does not depend on who
// stopped a run when.
bool compares_factors(const CheckpointSettings& settings, const Phase& phase,
                      std::int64_t completed, bool over, const SiteStore& sites) {
  if (!phase.stateful() || !sites.in_memory()) return false;
  const bool checkpoint = settings.factors && settings.every > 0 && completed % settings.every == 0;
  return checkpoint || over || completed == phase.end_round();
}

}  // namespace

bool is_over(const Recipe& recipe, const std::vector<Phase>& phases, const ServerState& state) {
  if (state.round == phases.back().end_round()) return true;
  const bool last_phase = state.phase + 1 == std::int64_t(phases.size());
  return last_phase && recipe.stop.converged > 0 && has_converged(state, recipe.stop.converged);
}

bool is_due(int every, std::int64_t completed, std::int64_t rounds) {
  return completed == rounds || (every > 0 && completed % every == 0);
}

std::size_t phase_of(const std::vector<Phase>& phases, std::int64_t round) {
  std::size_t index = 0;
  while (round >= phases[index].end_round()) ++index;
  return index;
}

RunResult play_run(const RunParts& parts, HostVector<float> initial, const RunHooks& hooks,
                   RunKeeper* keeper) {
  check_same_size("play_run", "initial weights", size_of(parts.layout), initial.size());
  Place& place = parts.place;
  const std::int64_t rounds = parts.phases.back().end_round();
  RunResult result;
  ServerState& state = result.state;
  state = initial_server_state(parts.recipe.server, std::move(initial), parts.priors);
  if (keeper != nullptr) {
    if (std::optional<ServerState> kept = keeper->begin()) state = std::move(*kept);
  }
  bool over = is_over(parts.recipe, parts.phases, state);
  // A run that was over already still says how it ended.
  if (over) result.metrics = place.evaluate(state, true);
  const auto start = Clock::now();
  while (!over) {
    const std::size_t index = phase_of(parts.phases, state.round);
    const Phase& phase = parts.phases[index];
    prepare_round(parts, index, state);
    const auto round_start = Clock::now();
    RoundReport report{.round = state.round,
                       .rounds = rounds,
                       .phase = phase.algorithm->name,
                       .numbers = {},
                       .seconds = 0,
                       .metrics = {},
                       .last = false};
    report.numbers = place.play(state, phase);
    report.numbers.window = follow_window(parts, phase, report.numbers, state);
    report.last = over = is_over(parts.recipe, parts.phases, state);
    if (compares_factors(parts.recipe.checkpoint, phase, state.round, over, place.sites())) {
      place.bring_home(state);
      const std::optional<FactorGap> gap = place.factor_gap(state, phase);
      report.numbers.factor_gap =
          gap ? *gap : factor_gap(state, phase, parts.population, place.sites());
    }
    const bool stop = place.all_stop(hooks.stop_requested && hooks.stop_requested());
    if (over || is_due(parts.recipe.evaluate.every, state.round, rounds)) {
      report.metrics = place.evaluate(state, over);
      if (const Temperatures fitted = place.temperatures(); fitted.round == state.round) {
        state.temperatures = fitted;
      }
      result.metrics = report.metrics;
    }
    report.seconds = seconds_since(round_start);
    ++result.played;
    if (keeper != nullptr) {
      keeper->write(report);
      if (keeper->wants(state.round, phase, stop || over)) {
        place.bring_home(state);
        keeper->keep(state, phase, stop || over);
      }
    }
    if (hooks.watch) hooks.watch(report);
    if (stop && !over) {
      result.end = RunEnd::interrupted;
      break;
    }
  }
  place.bring_home(state);
  if (keeper != nullptr) {
    if (result.end == RunEnd::done) {
      keeper->end(state, seconds_since(start));
    } else {
      result.goes_on_from = keeper->goes_on_from();
    }
  }
  return result;
}

}  // namespace fedep
