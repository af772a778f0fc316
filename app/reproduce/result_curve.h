// A run's curves as its line in results.jsonl keeps them, so that they can be drawn where the run's
// log is not: the scores that tables read off the run, each averaged over ten rounds.
//
//   result.curve = curve_of_run(log, recipe, curve_scores("table2", log));
//   published_runs("result/results.jsonl", {"table2"}, {});   // for whatever draws runs
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/reproduce/results.h"
#include "fedep/config/recipe.h"
#include "fedep/page/report/run_record.h"

namespace fedep {

// What the measures of a table, and of tables that are read off its runs, are taken of. For a table
// that is not the paper's every score of the last round; nothing for one whose runs are another's.
std::vector<std::string> curve_scores(std::string_view table, std::span<const RoundRecord> rounds);

ResultCurve curve_of_run(std::span<const RoundRecord> rounds, const Recipe& recipe,
                         const std::vector<std::string>& scores);

// A record with the curve's scores in every tenth round and no more of the recipe than row, seed
// and phases' lengths. No rounds where the line has no curve.
RunRecord published_run(const Result& result);

// The curves behind these tables, of these rows alone if some are named; in the order of `rows`, or
// of the paper's table. Throws InputError naming those of which it has none.
std::vector<RunRecord> published_runs(const std::filesystem::path& results,
                                      const std::vector<std::string>& tables,
                                      const std::vector<std::string>& rows);

}  // namespace fedep
