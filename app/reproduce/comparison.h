// Tables of paper | ours | difference, for the terminal and for the pages of result/.
//
//   std::cout << comparison("table2", read_results("result/results.jsonl"));
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/reproduce/results.h"

namespace fedep {

// A Markdown table, over seeds mean ± standard deviation: one line per row and measure where the
// paper has numbers, one line per row where it has none. Of results of one row and seed the last
// counts; of results of one row, those with most rounds. The paper's rows come first, those without
// a result included unless `only_ours`.
std::string comparison(std::string_view table, std::span<const Result> results,
                       bool only_ours = false);

// The same as cells. Nothing in it: not run.
struct ComparisonTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
ComparisonTable comparison_table(std::string_view table, std::span<const Result> results,
                                 bool only_ours = false);
// Results of rows that a table of the paper's does not have; comparison_table() is without them.
ComparisonTable ours_alone(std::string_view table, std::span<const Result> results);

// Over seeds: "50.3 ± 0.1", "1200 (1 of 2 seeds)" where some are NaN, "–" where all are. Values are
// multiplied by `scale`.
std::string spread_text(std::span<const double> values, double scale, int digits);

// `text` with what stands between <!-- NAME --> and <!-- end --> replaced by table NAME's
// comparison, for every such place. Throws InputError for a place without its end. `source` is what
// errors call the text.
std::string with_tables(std::string_view text, std::span<const Result> results,
                        std::string_view source);
// Names of the tables that have results, each once, in the order of their first one.
std::vector<std::string> tables_of(std::span<const Result> results);

}  // namespace fedep
