// A whole run: phases one after another, rounds scored and kept, to the end or until somebody asks
// to stop.
//
//   const RunResult result = play_run(parts, initial_weights, hooks, &keeper);
//   if (result.end == RunEnd::interrupted) …
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/layout.h"
#include "fedep/metric/metrics.h"
#include "fedep/round/phase.h"
#include "fedep/round/place.h"
#include "fedep/round/population.h"
#include "fedep/round/server_state.h"

namespace fedep {

enum class RunEnd { done, interrupted };

// What a finished round looks like to somebody who watches.
struct RoundReport {
  std::int64_t round = 0;   // its index
  std::int64_t rounds = 0;  // of the whole run
  std::string_view phase;
  RoundNumbers numbers;
  double seconds = 0;
  Metrics metrics;    // empty in rounds that do not evaluate
  bool last = false;  // no round follows
};

struct RunHooks {
  std::function<void(const RoundReport&)> watch = {};
  std::function<bool()> stop_requested = {};  // asked between rounds
};

// Keeps a run, so that it can be read and resumed (store/run_keeper.h does, on disk).
class RunKeeper {
 public:
  virtual ~RunKeeper() = default;

  // Asked first: the state to go on from; nothing if this run begins.
  virtual std::optional<ServerState> begin() = 0;
  virtual void write(const RoundReport& round) = 0;
  // Whether the state after so many rounds is to be kept; `stop`: nobody plays on for now.
  virtual bool wants(std::int64_t completed, const Phase& phase, bool stop) const = 0;
  virtual void keep(const ServerState& state, const Phase& phase, bool stop) = 0;
  // No round follows this state's last; `seconds` since this start's first.
  virtual void end(const ServerState& state, double seconds) = 0;
  // The round that the next start would begin with.
  virtual std::int64_t goes_on_from() const = 0;
};

// Everything the rounds need; what is referred to must outlive the run.
struct RunParts {
  const Recipe& recipe;
  const std::vector<Phase>& phases;
  const Population& population;
  const Layout& layout;
  Place& place;
  std::vector<CoordinatePrior> priors = {};  // of single coordinates, in place of server.prior
};

struct RunResult {
  RunEnd end = RunEnd::done;
  ServerState state;              // after the last round played
  Metrics metrics;                // of the last evaluation
  std::int64_t played = 0;        // rounds of this start; 0 if the run was over already
  std::int64_t goes_on_from = 0;  // if interrupted: the round that the next start begins with
};

// Plays all rounds from the beginning, or from where `keeper` says on. Without one nothing is kept.
RunResult play_run(const RunParts& parts, HostVector<float> initial, const RunHooks& hooks = {},
                   RunKeeper* keeper = nullptr);

// Whether something that happens every so many rounds happens after `completed` of `rounds`; it does
// after the last.
bool is_due(int every, std::int64_t completed, std::int64_t rounds);

// No round follows: all were played, or q has converged in the last phase and the recipe's
// stop.converged ends the run there.
bool is_over(const Recipe& recipe, const std::vector<Phase>& phases, const ServerState& state);

// The phase that round `round` belongs to, by index.
std::size_t phase_of(const std::vector<Phase>& phases, std::int64_t round);

}  // namespace fedep
