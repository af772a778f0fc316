// The paper's tables as data (Guo+23 Tables 2, 3, 5, 6, 8): what each measures, how that is read
// off a run's log, and the published numbers. Figures 4 and 6, and the tables of
// ours on smaller data, have measures and no numbers.
//
//   const PaperTable* table = find_paper_table("table2");
//   table->rows[2].values[1].mean;   // 0.507, FedEP (I) by round 1500
//
// Fractions are fractions here, as in log.jsonl; only what is printed is in percent.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace fedep {

enum class Reading {
  best_by_round,  // largest 100-round mean within the first `round` rounds
  best,           // the same within `round` rounds or the whole run, if that is shorter
  mean_at_round,  // 10-round mean when `round` rounds are completed
  rounds_to,      // completed rounds when the 10-round mean first reaches `threshold`
  last,           // value after the last round
};

enum class Unit { percent, rounds, nats, ratio };

struct Measure {
  std::string_view name;    // as results.jsonl spells it
  std::string_view metric;  // as log.jsonl spells it
  Reading reading = Reading::last;
  std::int64_t round = 0;
  double threshold = 0;
  std::string_view title = {};  // as tables print it
  Unit unit() const {
    return reading == Reading::rounds_to       ? Unit::rounds
           : metric.starts_with("nll")         ? Unit::nats
           : metric.starts_with("temperature") ? Unit::ratio
                                               : Unit::percent;
  }
};

inline constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

struct PaperValue {
  double mean = kNotThere;
  double deviation = kNotThere;  // over seeds, where published
  int reached = 5;               // of 5 seeds, those behind the mean
};

inline constexpr std::size_t kPaperMeasures = 4;  // of a table of the paper's; ours may have more

struct PaperRow {
  std::string_view name;   // the recipe's `row`
  std::string_view title;  // as the paper has it
  std::array<PaperValue, kPaperMeasures> values;
};

struct PaperTable {
  std::string_view name;
  std::string_view title;
  std::span<const Measure> measures;
  std::span<const PaperRow> rows = {};
  // The table whose runs these are, where no recipe names this one.
  std::string_view runs_of = {};
  // A table some of whose rows have the settings of some of these: one run is both.
  std::string_view shares_runs_with = {};
};

std::span<const PaperTable> paper_tables();
// Null if there is none of this name.
const PaperTable* find_paper_table(std::string_view name);

// Which command shows a table or figure that is not made of recipes' runs; empty if none does.
std::string_view shown_elsewhere(std::string_view name);

}  // namespace fedep
