// A run's history read as a row of a table: the table's measures, or for a table that is not the
// paper's every score of the last evaluation.
//
//   const History history = read_history(path);
//   const Metrics metrics = table_metrics(*find_paper_table("table2"), history.rounds, every);
//
// A run that evaluates every `every` rounds has a curve of those rounds only. It is read as the
// paper's, one point for every `every` rounds: a window of 100 rounds holds 100/every points (at
// least one), and rounds to a threshold are multiples of `every`. An evaluation that is in the log
// only because the run ended there counts for the last value and for nothing else. A run that went on
// with another `every` may lack rounds of the new one: it has no curve then, and no running means.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/reproduce/paper_tables.h"
#include "fedep/store/log/history.h"

namespace fedep {

// NaN stands for what does not exist: a threshold that was not reached, a round that was not
// played.
Metrics table_metrics(const PaperTable& table, std::span<const RoundRecord> rounds, int every);
// The scores of the last round.
Metrics last_metrics(std::span<const RoundRecord> rounds);

// Whether rounds every, 2 every, … are all scored.
bool is_scored_every(std::span<const RoundRecord> rounds, int every);

// Values after each round, NaN where a round was not scored.
std::vector<double> score_after_rounds(std::span<const RoundRecord> rounds,
                                       std::string_view metric);

// Values after rounds every, 2 every, …, NaN where a score does not exist; nothing where not all of
// these rounds are scored.
std::vector<double> curve_of(std::span<const RoundRecord> rounds, std::string_view metric,
                             int every);

// What a history says of its run as a whole.
struct RunSummary {
  std::int64_t rounds = 0;          // played
  double seconds = 0;               // of all rounds, over however many starts
  std::int64_t refused_rounds = 0;  // in which an answer was outside the grid
  bool finished = false;
  std::string device;
  std::string version;
};
RunSummary summary_of(const History& history);
// "clients' answers were refused in 3 of 100 rounds", or nothing.
std::string refusals_text(const RunSummary& summary);
// In more than a tenth of the rounds, so that the scores are of a run that did not work.
bool often_refused(const RunSummary& summary);

}  // namespace fedep
