#include "fedep/round/run.h"

#include <chrono>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

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
  state = initial_server_state(parts.recipe.server, std::move(initial));
  if (keeper != nullptr) {
    if (std::optional<ServerState> kept = keeper->begin()) state = std::move(*kept);
  }
  // A run that was over already still says how it ended.
  if (state.round == rounds) result.metrics = place.evaluate(state, true);
  const auto start = Clock::now();
  while (state.round < rounds) {
    const std::size_t index = phase_of(parts.phases, state.round);
    const Phase& phase = parts.phases[index];
    if (state.phase != std::int64_t(index)) {
      place.bring_home(state);
      state = begin_phase(std::move(state), phase, std::int64_t(index), parts.population);
      place.sites().clear();
    }
    const auto round_start = Clock::now();
    RoundReport report{.round = state.round,
                       .rounds = rounds,
                       .phase = phase.algorithm->name,
                       .numbers = {},
                       .seconds = 0,
                       .metrics = {}};
    report.numbers = place.play(state, phase);
    const bool stop = hooks.stop_requested && hooks.stop_requested();
    if (is_due(parts.recipe.evaluate.every, state.round, rounds)) {
      report.metrics = place.evaluate(state, state.round == rounds);
      if (const Temperatures fitted = place.temperatures(); fitted.round == state.round) {
        state.temperatures = fitted;
      }
      result.metrics = report.metrics;
    }
    report.seconds = seconds_since(round_start);
    ++result.played;
    if (keeper != nullptr) {
      keeper->write(report);
      if (keeper->wants(state.round, phase, stop)) {
        place.bring_home(state);
        keeper->keep(state, phase, stop);
      }
    }
    if (hooks.watch) hooks.watch(report);
    if (stop && state.round < rounds) {
      result.end = RunEnd::interrupted;
      break;
    }
  }
  place.bring_home(state);
  if (keeper != nullptr) {
    if (result.end == RunEnd::done) {
      keeper->end(rounds, seconds_since(start));
    } else {
      result.goes_on_from = keeper->goes_on_from();
    }
  }
  return result;
}

}  // namespace fedep
