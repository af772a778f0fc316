#include "app/reproduce/result_curve.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/reproduce/paper_tables.h"
#include "app/reproduce/table_metrics.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// A line stays short, and a pixel is more than this.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// Over each `every` values, the last few too; NaN where none of them is there.
std::vector<double> block_means(const std::vector<double>& values, std::size_t every) {
  std::vector<double> means;
  for (std::size_t begin = 0; begin < values.size(); begin += every) {
    double sum = 0;
    int there = 0;
    for (std::size_t i = begin; i < std::min(begin + every, values.size()); ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++there;
    }
    means.push_back(there > 0 ? rounded(sum / there) : kNotThere);
  }
  return means;
}

void add_once(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Rows of ours alone come last, in the file's order.
std::size_t place_of(const Result& result, const std::vector<std::string>& rows) {
  if (!rows.empty()) return std::size_t(std::ranges::find(rows, result.row) - rows.begin());
  const PaperTable* table = find_paper_table(result.table);
  if (table == nullptr) return 0;
  return std::size_t(std::ranges::find(table->rows, result.row, &PaperRow::name) -
                     table->rows.begin());
}

}  // namespace

std::vector<std::string> curve_scores(std::string_view table, std::span<const RoundRecord> rounds) {
  std::vector<std::string> names;
  const PaperTable* own = find_paper_table(table);
  if (own == nullptr) {
    for (const auto& [name, value] : last_metrics(rounds)) names.push_back(name);
    return names;
  }
  if (!own->runs_of.empty()) return names;
  for (const PaperTable& other : paper_tables()) {
    if (other.name != table && other.runs_of != table) continue;
    for (const Measure& measure : other.measures) add_once(names, measure.metric);
  }
  return names;
}

ResultCurve curve_of_run(std::span<const RoundRecord> rounds, const Recipe& recipe,
                         const std::vector<std::string>& scores) {
  ResultCurve curve;
  curve.switches = switches_in(recipe);
  for (const std::string& score : scores) {
    std::vector<double> means =
        block_means(score_after_rounds(rounds, score), std::size_t(curve.every));
    const auto there = [](double value) { return std::isfinite(value); };
    if (std::ranges::any_of(means, there)) curve.scores.emplace_back(score, std::move(means));
  }
  return curve;
}

RunRecord published_run(const Result& result) {
  const ResultCurve& curve = result.curve;
  RunRecord run;
  run.name = fmt::format("{}-seed{}", result.row, result.seed);
  run.status = RunStatus::finished;
  run.recipe.table = result.table;
  run.recipe.row = result.row;
  run.recipe.seed = result.seed;
  run.recipe.evaluate.every = int(curve.every);
  std::int64_t begin = 0;
  std::vector<std::int64_t> ends = curve.switches;
  ends.push_back(result.rounds);
  for (const std::int64_t end : ends) {
    run.recipe.phases.emplace_back().rounds = int(end - begin);
    begin = end;
  }
  if (curve.scores.empty()) return run;
  std::vector<RoundRecord>& rounds = run.history.rounds;
  for (std::int64_t i = 0; i < result.rounds; ++i) rounds.emplace_back().round = i;
  for (const auto& [score, means] : curve.scores) {
    for (std::size_t block = 0; block < means.size(); ++block) {
      const std::size_t round = (block + 1) * std::size_t(curve.every) - 1;
      if (round < rounds.size() && std::isfinite(means[block])) {
        rounds[round].scores.emplace_back(score, means[block]);
      }
    }
  }
  return run;
}

std::vector<RunRecord> published_runs(const std::filesystem::path& path,
                                      const std::vector<std::string>& tables,
                                      const std::vector<std::string>& rows) {
  const std::vector<Result> all = read_results(path);
  std::vector<Result> results;
  for (const Result& result : all) {
    const bool asked_for = holds(tables, result.table) && (rows.empty() || holds(rows, result.row));
    if (!asked_for || result.curve.scores.empty()) continue;
    const auto shown = results_of_row(all, result.table, result.row);
    if (std::ranges::find(shown, &result) != shown.end()) results.push_back(result);
  }
  std::vector<std::string> missing = rows.empty() ? tables : rows;
  for (const Result& result : results) {
    std::erase(missing, rows.empty() ? result.table : result.row);
  }
  if (!missing.empty()) {
    throw InputError(fmt::format("{}: curves of {} must be there, but are not", path.string(),
                                 fmt::join(missing, ", ")));
  }
  std::ranges::stable_sort(results, {}, [&](const Result& r) { return place_of(r, rows); });
  std::vector<RunRecord> runs;
  for (const Result& result : results) {
    runs.push_back(published_run(result));
    const auto of_this_row = [&](const Result& other) {
      return other.table == result.table && other.row == result.row;
    };
    // A row of several seeds is one curve, named after what their names have in common.
    if (std::ranges::count_if(results, of_this_row) == 1) runs.back().name = result.row;
  }
  return runs;
}

}  // namespace fedep
