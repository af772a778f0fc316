// A run's history, which its log.jsonl holds: how it began, its rounds, how it ended. One JSON
// object a line: first {"kind":"run",…}, then {"kind":"round",…} for every round, last
// {"kind":"end",…}. Whoever wants to know what happened in a run reads it here:
//
//   const History history = read_history(run / "log.jsonl");
//   for (const RoundRecord& round : history.rounds) score_of(round, "accuracy");
//
// store/log/run_log.h writes it. What does not exist is NaN here and null in the file. Fields that are
// not known are passed over, and so is a known one that holds something else than it should: logs
// of other versions, and logs that somebody wrote by hand, are read as far as they go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/metric/metrics.h"
#include "fedep/round/play_round.h"

namespace fedep {

struct RunHeader {
  std::string recipe = {};  // with every default written out, as TOML
  std::uint64_t seed = 0;
  std::int64_t clients = 0;  // 0: not said
  std::string data = {};     // its fingerprint; empty: not said
  std::string version = {};
  std::string machine = {};
  std::string device = {};
  std::string remark = {};         // empty: none
  std::int64_t shared_rounds = 0;  // the first so many were played by another run (burn_in.h)

  bool operator==(const RunHeader&) const = default;
};

// How far q moved over a window of rounds (round/diagnosis/convergence.h); infinity, which is null in the file,
// where it was improper.
struct WindowEnd {
  double mean_moved = std::numeric_limits<double>::infinity();
  double log_sd_moved = std::numeric_limits<double>::infinity();
  bool judged = true;
  std::optional<MovesLeft> left = {};  // nothing: nobody can tell

  double moved() const { return mean_moved > log_sd_moved ? mean_moved : log_sd_moved; }
  bool operator==(const WindowEnd&) const = default;
};

struct RoundRecord {
  std::int64_t round = -1;  // its index, from 0; -1: not said
  std::string phase = {};
  std::int64_t clients = 0;  // asked
  std::int64_t dropped = 0;
  std::int64_t outside_grid = 0;
  std::int64_t diverged = 0;
  std::int64_t skipped = 0;
  std::int64_t clipped = 0;
  std::int64_t guarded = 0;
  double step_scale = 1;
  double condition = 0;  // of q's precision matrix in the full family; 0: none
  // Part of every weight's precision in q that factors began with (round/diagnosis/start_left.h); nothing where they
  // began flat or nobody said; NaN: not to be known.
  std::optional<double> start_precision = {};
  // Of q to the product of prior and factors, relative; NaN: nobody looked.
  double factor_gap_eta = std::numeric_limits<double>::quiet_NaN();
  double factor_gap_lambda = std::numeric_limits<double>::quiet_NaN();
  std::int64_t client_steps = 0;
  std::int64_t bytes_up = 0;
  std::int64_t bytes_down = 0;
  double seconds = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();  // mean over the clients' steps
  std::int64_t window = 0;  // length of the one that begins with this round; 0: none does
  std::optional<WindowEnd> window_end = {};  // of the one that ends with it
  Metrics scores = {};                       // empty in rounds that were not evaluated
};

struct RunEndRecord {
  std::int64_t rounds = -1;   // -1: not said
  double seconds = 0;         // of the last start
  std::int64_t improper = 0;  // coordinates (full family: directions) without a positive precision

  bool operator==(const RunEndRecord&) const = default;
};

struct History {
  std::optional<RunHeader> header = {};
  std::vector<RoundRecord> rounds = {};
  std::optional<RunEndRecord> end = {};  // only where it is the last line
};

// Infinity does not exist either.
RoundRecord record_of(std::int64_t round, std::string_view phase, const RoundNumbers& numbers,
                      double seconds, Metrics scores);

// A score by its name, "train_loss", or "moved", the larger of a window's two; NaN if the round has none.
double score_of(const RoundRecord& round, std::string_view name);

// Whether these are rounds 0, 1, …, `rounds` - 1 and nothing else, between a header and the end.
bool is_whole(const History& history, std::int64_t rounds);

// Throws InputError naming the line that is no JSON object with a kind. A last line without its
// newline is what a crash leaves behind, and is ignored.
History read_history(const std::filesystem::path& log);

// Of a run that still goes on, or whose log is damaged: the lines until the first that is not the
// next one, and a sentence on that line; it is empty if all is well.
struct HistorySoFar {
  History history;
  std::string fault;
};
HistorySoFar read_history_so_far(const std::filesystem::path& log);

}  // namespace fedep
