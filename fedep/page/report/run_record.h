// What a run directory tells: its recipe, the rounds in its log, its last evaluation, its
// posterior. Reads what there is, also of a run that still goes on or was cut off, and says what is
// missing.
//
//   const RunRecord run = read_run_record("run/first");
//   run.history.rounds.size();         // played, of rounds_in(run.recipe)
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/page/report/coefficient_report.h"
#include "fedep/page/report/participation.h"
#include "fedep/page/report/posterior_spread.h"
#include "fedep/page/report/round_counters.h"
#include "fedep/store/json.h"
#include "fedep/store/log/history.h"
#include "fedep/store/verdict.h"

namespace fedep {

enum class RunStatus { finished, running, stopped };

// Of a run that is watched: what was added up as its rounds came.
struct RunSoFar {
  std::int64_t played = 0;
  std::int64_t rounds_each = 1;  // that a record of its history stands for (thinned_rounds.h)
  RoundCounters counters;
  std::optional<Participation> participation;  // nothing while it is being counted
};

struct RunRecord {
  std::string name;
  Recipe recipe;
  History history;   // rounds 0, 1, …, without gaps
  std::string date;  // when the log was last written, 2026-01-31T12:00:00Z
  RunStatus status = RunStatus::stopped;
  // evaluation.json, null if there is none:
  // {"round": …, "reliability": {"point": [{"confidence", "accuracy", "weight"}…], "marginal": …}}
  Json evaluation = nullptr;
  std::optional<PosteriorSpread> posterior;  // nothing in phases of point estimates
  std::optional<CoefficientReport> coefficients =
      {};                               // of a linear model on a table, for whoever knows them
  std::vector<std::string> faults;      // sentences on what could not be read
  std::optional<RunSoFar> so_far;       // nothing: `history` has all there is
  std::optional<Verdict> verdict = {};  // on a run that is finished

  std::int64_t played() const {
    return so_far ? so_far->played : std::int64_t(history.rounds.size());
  }
  std::int64_t rounds_each() const { return so_far ? so_far->rounds_each : 1; }
};

// When a file was last written, as 2026-01-31T12:00:00Z.
std::string date_of(const std::filesystem::path& file);

std::int64_t rounds_in(const Recipe& recipe);
// Completed rounds after which another phase begins.
std::vector<std::int64_t> switches_in(const Recipe& recipe);

// Posteriors are left out where the checkpoint is larger than this.
inline constexpr std::uintmax_t kLargestCheckpoint = std::uintmax_t(4) << 30;

// Throws InputError where there is no run: no such folder, no recipe.toml, no readable recipe. A
// log that was written to within the last minute, or within three of its rounds, belongs to a run
// that goes on. `name` is how the run is called; empty: its folder's name.
RunRecord read_run_record(const std::filesystem::path& run, std::string name = "",
                          std::uintmax_t largest_checkpoint = kLargestCheckpoint);

// The latest checkpoint's posterior; nothing if there is no checkpoint, it is larger than that, or
// its phase infers none. Throws InputError for a damaged file.
std::optional<PosteriorSpread> read_posterior(const std::filesystem::path& run,
                                              const Recipe& recipe,
                                              std::uintmax_t largest_checkpoint);

// A run's evaluation.json, null if there is none. Throws InputError for what is no JSON object.
Json read_evaluation(const std::filesystem::path& run);

// A name for each folder: its own, with as many of its parents as tell it from the others.
std::vector<std::string> names_of(const std::vector<std::filesystem::path>& runs);

}  // namespace fedep
