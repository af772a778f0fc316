// What the page needs of runs and results together: tables in the paper's terms, and the page's
// JSON with them.
//
//   const Json data = build_report(records, {.results = read_results("result/results.jsonl")});
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/reproduce/results.h"
#include "fedep/page/report/report_data.h"

namespace fedep {

struct RowName {
  std::string table;
  std::string row;
};

// Runs of the paper's recipes beside the paper's numbers; of all others rounds to a threshold
// (10-round means), the best 10- and 100-round means, and the last value. Thresholds are the two
// highest multiples of 5 % that some run reaches.
// `rows` says of each run which row it is, where that is not its recipe's.
std::vector<ReportTable> run_tables(std::span<const RunRecord> runs,
                                    std::span<const RowName> rows = {});

// Paper | ours | difference for every table in results.jsonl.
std::vector<ReportTable> results_tables(std::span<const Result> results);

struct ReportParts {
  std::vector<Result> results = {};
  std::vector<std::string> notices = {};
  std::vector<RowName> rows = {};  // of run_tables()
  bool live = false;
  bool tables = true;  // of the runs
};
Json build_report(std::span<const RunRecord> runs, const ReportParts& parts);

}  // namespace fedep
