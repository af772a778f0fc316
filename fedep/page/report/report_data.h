// Everything the page shows, as one JSON document. The page draws it; nothing is computed there but
// running means, means over seeds and where things lie on the screen.
//
//   const Json data = report_data(runs, {.tables = {table}, .version = "0.1.0"});
//   const std::string html = report_page(data);
//
// {"version", "live", "notices": [text…], "titles": {"fed_avg": "FedAvg"…}, "tables": [{"title", "note", "columns", "rows"}…],
//  "groups": [{"name", "runs": [index…]}…],            runs that differ in their seed alone
//  "metrics": [{"name", "title", "percent", "larger_is_better"}…],
//  "diff": {"keys": […], "values": [[a value per run]…]},
//  "runs": [{"name", "seed", "status", "played", "rounds", "rounds_each", "algorithm", "inference", "data",
//            "model", "every", "asked", "device", "machine", "recipe", "faults",
//            "verdict": {"trust": "yes", "not judged" or "no", "text"},
//            "phases": [{"algorithm", "first_round", "rounds"}…],
//            "bytes": [cumulative…], "seconds": [cumulative…],
//            "curves": {"accuracy": [a value or null per round, or per rounds_each of them]…},
//            "counters": {"dropped": {"total", "rounds": that had some}…},
//            "factor_gap": null or {"round", "eta", "lambda", "text": a sentence where it is far},
//            "participation": {"clients", "counts": [times asked…]
//                              or "times": [[times, clients]…]},
//            "reliability": {"point": […], "marginal": […]}, "per_client": …,
//            "risk": {"point": {"events", "auc", "auc_se", "slope", …, "bins": […], "missing": [text…]},
//                     "marginal": …, "clients": [{"client", "point", "marginal"}…]},
//            "selective": …, "detection": …,              as evaluation_part.h says
//            "coefficients": null or what forest_json.h says,
//            "posterior": {…} or {"round", "weights", "improper", "withheld": why}}…]}
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fedep/page/report/run_record.h"

namespace fedep {

// A table of text.
struct ReportTable {
  std::string title;
  std::string note;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct ReportExtras {
  std::vector<ReportTable> tables = {};
  std::vector<std::string> notices = {};  // of runs that are not shown, for instance
  std::string version = {};
  // Of algorithms and inference methods, by name; one without is shown by its name.
  std::map<std::string, std::string> titles = {};
  bool live = false;  // the page asks for data.json every two seconds
};

Json report_data(std::span<const RunRecord> runs, const ReportExtras& extras);

}  // namespace fedep
