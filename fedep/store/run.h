// A whole run: phases one after another, rounds logged and scored, checkpoints, and resuming to the
// same bits.
//
//   const RunResult result = play_run(parts, initial_weights, header, hooks, resume);
//   if (result.end == RunEnd::interrupted) …
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/layout.h"
#include "fedep/round/phase.h"
#include "fedep/round/place.h"
#include "fedep/round/population.h"
#include "fedep/round/server_state.h"
#include "fedep/store/history.h"
#include "fedep/store/run_directory.h"

namespace fedep {

enum class RunEnd { done, interrupted };

// What a finished round looks like to somebody who watches.
struct RoundReport {
  std::int64_t round = 0;   // its index
  std::int64_t rounds = 0;  // of the whole run
  std::string_view phase;
  RoundNumbers numbers;
  double seconds = 0;
  Metrics metrics;  // empty in rounds that do not evaluate
};

struct RunHooks {
  std::function<void(const RoundReport&)> watch;  // may be empty
  std::function<bool()> stop_requested;           // asked between rounds; may be empty
  // After so many rounds `keep` gets the state, brought home, the phase it belongs to, and all
  // rounds until then.
  std::vector<std::int64_t> keep_after = {};
  std::function<void(const ServerState&, const Phase&, std::span<const RoundRecord>)> keep = {};
};

// Everything the rounds need; what is referred to must outlive the run.
struct RunParts {
  const Recipe& recipe;
  const std::vector<Phase>& phases;
  const Population& population;
  const Layout& layout;
  Place& place;
  // Where the run is kept; null: nowhere, and nothing can be resumed.
  const RunDirectory* directory;
};

// Plays all rounds from the beginning, or with `resume` from the latest checkpoint on. Returns the
// state after the last round played.
struct RunResult {
  RunEnd end = RunEnd::done;
  ServerState state;
  Metrics metrics;                // of the last evaluation
  History history;                // of the whole run, also of starts before this one
  std::int64_t played = 0;        // rounds of this start; 0 if the run was over already
  std::int64_t goes_on_from = 0;  // if interrupted: the round that `resume` begins with
};
RunResult play_run(const RunParts& parts, HostVector<float> initial, const RunHeader& header,
                   const RunHooks& hooks, bool resume);

}  // namespace fedep
