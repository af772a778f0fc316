#include "app/report/report_build.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "app/reproduce/comparison.h"
#include "app/reproduce/paper_tables.h"
#include "app/reproduce/table_metrics.h"
#include "app/version.h"
#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/method.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/metric/curve.h"
#include "fedep/page/report/run_curves.h"
#include "fedep/sim/toy/toy_task.h"

namespace fedep {
namespace {

// A score of one run, better when larger: losses with their sign turned.
struct ScoreReading {
  std::vector<double> curve;  // a point for every evaluation that was due
  std::size_t every = 1;      // rounds between them

  std::size_t points(std::size_t rounds) const { return std::max<std::size_t>(1, rounds / every); }
  double best(std::size_t window) const {
    return curve.empty() ? kNotThere
                         : best_by_round(curve, std::int64_t(curve.size()), points(window));
  }
  double rounds_to(double threshold) const {
    const auto reached = rounds_to_threshold(curve, threshold, points(kThresholdWindow));
    return reached ? double(*reached * std::int64_t(every)) : kNotThere;
  }
};

ScoreReading reading_of(const RunRecord& run, const std::string& score, double sign) {
  ScoreReading reading;
  const int every = run.recipe.evaluate.every;
  if (every > 0) reading.every = std::size_t(every);
  reading.curve = curve_of(run.history.rounds, score, every);
  for (double& value : reading.curve) value *= sign;
  return reading;
}

double last_of(const RunRecord& run, const std::string& score) {
  const std::vector<double> curve = score_curve(run, score);
  const auto found =
      std::find_if(curve.rbegin(), curve.rend(), [](double v) { return std::isfinite(v); });
  return found == curve.rend() ? kNotThere : *found;
}

// The two highest multiples of 5 % that some run's 10-round mean reaches; of 1 % below 10 %.
std::vector<double> thresholds_of(std::span<const RunRecord> runs, const std::string& score) {
  double best = 0;
  for (const RunRecord& run : runs) {
    const double value = reading_of(run, score, 1).best(kThresholdWindow);
    if (std::isfinite(value)) best = std::max(best, value);
  }
  const double steps = best < 0.1 ? 100 : 20;  // in 1
  const double top = std::floor(best * steps + 1e-9);
  std::vector<double> out;
  for (const double multiple : {top - 1, top}) {
    if (multiple > 0) out.push_back(multiple / steps);
  }
  return out;
}

// The scores worth a table of their own: what the paper's tables have, or else the first.
std::vector<std::string> main_scores(std::span<const RunRecord> runs) {
  const std::vector<std::string> there = scores_in(runs);
  std::vector<std::string> chosen;
  for (const std::string_view name : {"accuracy", "micro_f1", "macro_f1", "auc"}) {
    if (std::find(there.begin(), there.end(), name) != there.end()) chosen.emplace_back(name);
  }
  if (chosen.empty() && !there.empty()) chosen.push_back(there.front());
  return chosen;
}

ReportTable own_table(std::span<const RunRecord> runs, const std::string& score) {
  const ScoreStyle style = score_style(score);
  const double sign = style.larger_is_better ? 1 : -1;
  const double scale = style.percent ? 100 : 1;
  const int digits = style.percent ? 1 : 4;
  const std::string unit = style.percent ? ", %" : "";
  const std::vector<double> thresholds =
      style.percent && style.larger_is_better ? thresholds_of(runs, score) : std::vector<double>();
  ReportTable table{.title = style.title,
                    .note =
                        "Rounds to a threshold in means over 10 rounds, the best mean over 10 "
                        "and over 100 rounds, and the last value.",
                    .columns = {"run"},
                    .rows = {}};
  for (const double threshold : thresholds) {
    table.columns.push_back(fmt::format("rounds to {:.3g} %", threshold * 100));
  }
  for (const std::string_view name : {"best over 10", "best over 100", "last"}) {
    table.columns.push_back(fmt::format("{}{}", name, unit));
  }
  for (const RunGroup& group : group_by_seed(runs)) {
    // Over the group's seeds.
    const auto cell = [&](const std::function<double(const RunRecord&)>& value, double by,
                          int places) {
      std::vector<double> values;
      for (const std::size_t run : group.runs) values.push_back(value(runs[run]));
      return spread_text(values, by, places);
    };
    auto& row = table.rows.emplace_back(std::vector<std::string>{group.name});
    for (const double threshold : thresholds) {
      row.push_back(
          cell([&](const RunRecord& run) { return reading_of(run, score, 1).rounds_to(threshold); },
               1, 0));
    }
    for (const std::size_t window : {kThresholdWindow, kBestWindow}) {
      row.push_back(cell(
          [&](const RunRecord& run) { return sign * reading_of(run, score, sign).best(window); },
          scale, digits));
    }
    row.push_back(cell([&](const RunRecord& run) { return last_of(run, score); }, scale, digits));
  }
  return table;
}

Result result_of(const RunRecord& run, const PaperTable& table, const std::string& row) {
  const RunSummary summary = summary_of(run.history);
  return {.table = std::string(table.name),
          .row = row,
          .seed = run.recipe.seed,
          .rounds = summary.rounds,
          .metrics = table_metrics(table, run.history.rounds, run.recipe.evaluate.every),
          .seconds = summary.seconds,
          .refused_rounds = summary.refused_rounds,
          .device = summary.device,
          .date = run.date,
          .version = summary.version};
}

void add_comparison(const std::string& name, std::span<const Result> results, bool only_ours,
                    std::string_view note, std::vector<ReportTable>& out) {
  const PaperTable* paper = find_paper_table(name);
  const std::string title = paper != nullptr ? fmt::format("{}: {}", name, paper->title) : name;
  const auto add = [&](ComparisonTable table, std::string_view end, std::string_view about) {
    if (table.rows.empty()) return;
    out.push_back({.title = title + std::string(end),
                   .note = std::string(about),
                   .columns = std::move(table.columns),
                   .rows = std::move(table.rows)});
  };
  add(comparison_table(name, results, only_ours), "", note);
  add(ours_alone(name, results), ", ours alone", "Rows that the paper does not have.");
}

RowName row_of(const RunRecord& run) { return {run.recipe.table, run.recipe.row}; }

template <class Table>
void add_titles(const Table& table, std::map<std::string, std::string>& titles) {
  for (const auto& row : table) titles.emplace(row.name, row.title);
}

}  // namespace

std::vector<ReportTable> run_tables(std::span<const RunRecord> runs,
                                    std::span<const RowName> rows) {
  std::vector<ReportTable> tables;
  std::vector<RunRecord> others;
  std::vector<Result> results;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const RowName row = rows.empty() ? row_of(run) : rows[i];
    const PaperTable* own = find_paper_table(row.table);
    if (own == nullptr || row.row.empty()) {
      if (!run.history.rounds.empty()) others.push_back(run);
      continue;
    }
    for (const PaperTable& table : paper_tables()) {
      if (&table == own || table.runs_of == own->name) {
        results.push_back(result_of(run, table, row.row));
      }
    }
  }
  for (const std::string& name : tables_of(results)) {
    add_comparison(name, results, true, "The runs of this page beside the paper’s numbers.",
                   tables);
  }
  for (const std::string& score : main_scores(others)) tables.push_back(own_table(others, score));
  return tables;
}

std::vector<ReportTable> results_tables(std::span<const Result> results) {
  std::vector<ReportTable> tables;
  for (const std::string& name : tables_of(results)) {
    add_comparison(name, results, false, "All results that are kept, beside the paper’s numbers.",
                   tables);
  }
  return tables;
}

Json build_report(std::span<const RunRecord> runs, const ReportParts& parts) {
  ReportExtras extras{
      .tables = parts.tables ? run_tables(runs, parts.rows) : std::vector<ReportTable>(),
      .notices = parts.notices,
      .version = version_text(),
      .live = parts.live};
  add_titles(algorithms(), extras.titles);
  add_titles(row_methods(), extras.titles);
  add_titles(methods(), extras.titles);
  add_titles(toy_methods(), extras.titles);
  for (ReportTable& table : results_tables(parts.results)) {
    extras.tables.push_back(std::move(table));
  }
  return report_data(runs, extras);
}

}  // namespace fedep
