// fedep report RUN… [--out report.html] [--results FILE] [--figure PREFIX [--table TABLES]]: one
// page, or pictures, of runs and of results that were kept.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/report/report_build.h"

namespace fedep {

struct ReportRequest {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path out = "report.html";
  std::filesystem::path results = {};  // results.jsonl; empty: none
  std::string figure = {};             // PREFIX: pictures in place of a page
  std::size_t window = 1;              // of the pictures' curves
  bool marginal = false;               // pictures: predictions averaged over draws too
  std::string score = {};              // pictures of this one alone; empty: of all there are
  // Pictures: runs that `results` keeps of these tables; of these rows alone, if some are named.
  std::vector<std::string> kept_tables = {};
  std::vector<std::string> kept_rows = {};
  std::vector<RowName> rows = {};  // the page: a run's row (report_build.h); none: its recipe's
};

// Runs that cannot be shown become notices. Throws InputError where nothing can. Gives the files it
// wrote.
std::vector<std::filesystem::path> write_report(const ReportRequest& request);

void add_report_command(Command& app, int& exit_code);

}  // namespace fedep
