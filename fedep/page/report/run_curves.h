// The curves in runs' logs: which scores there are, how they are called, which runs are the same
// but for their seed, and what those are on average.
//
//   for (const RunGroup& group : group_by_seed(runs)) {
//     const MeanCurve curve = mean_curve(runs, group, "accuracy");   // over seeds
//   }
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/page/report/run_record.h"

namespace fedep {

// Runs that differ in their seed alone, by index, in the order of their first.
struct RunGroup {
  std::string name;
  std::vector<std::size_t> runs;
};
std::vector<RunGroup> group_by_seed(std::span<const RunRecord> runs);

// How a score is shown. `name` as the log has it, without _marginal.
struct ScoreStyle {
  std::string title;
  bool percent = false;
  bool larger_is_better = false;
  bool is_score = true;  // else neither large nor small is better
};
ScoreStyle score_style(std::string_view name);

// Names of the scores in some runs' logs, the training loss and q's movement last, those with _marginal left out.
std::vector<std::string> scores_in(std::span<const RunRecord> runs);
// The log's name of a score of predictions that are averaged over draws.
std::string marginal_name(std::string_view score);

// The score after each round, NaN where there is none.
std::vector<double> score_curve(const RunRecord& run, std::string_view score);

// Over a group's runs, of running means over `window` rounds: after each round that all of them
// have played and scored, NaN elsewhere. The deviation is that of a sample (n - 1), NaN for one.
struct MeanCurve {
  std::vector<double> mean;
  std::vector<double> deviation;
};
MeanCurve mean_curve(std::span<const RunRecord> runs, const RunGroup& group, std::string_view score,
                     std::size_t window = 1);

}  // namespace fedep
