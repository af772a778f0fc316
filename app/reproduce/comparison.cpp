#include "app/reproduce/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "app/reproduce/paper_tables.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Row = std::vector<std::string>;

// A number over seeds.
struct Spread {
  double mean = kNotThere;
  double deviation = kNotThere;
  std::size_t there = 0, of = 0;
};

Spread spread_of(std::span<const double> values) {
  Spread spread{.of = values.size()};
  double sum = 0, squares = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++spread.there;
  }
  if (spread.there == 0) return spread;
  spread.mean = sum / double(spread.there);
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  if (spread.there > 1) spread.deviation = std::sqrt(squares / double(spread.there - 1));
  return spread;
}

// How a measure's numbers are printed.
struct Style {
  double scale = 1;
  int digits = 4;
};

Style style_of(const PaperTable* table, const Measure& measure) {
  if (table == nullptr) return {};
  if (measure.unit() == Unit::rounds) return {1, 0};
  if (measure.unit() == Unit::nats || measure.unit() == Unit::ratio) return {1, 3};
  return {100, table->measures.front().name == "precision" ? 2 : 1};
}

std::string text_of(const Spread& spread, const Style& style) {
  if (!std::isfinite(spread.mean)) return "–";
  std::string text = fmt::format("{:.{}f}", spread.mean * style.scale, style.digits);
  if (std::isfinite(spread.deviation)) {
    text += fmt::format(" ± {:.{}f}", spread.deviation * style.scale, style.digits);
  }
  if (spread.there < spread.of) text += fmt::format(" ({} of {} seeds)", spread.there, spread.of);
  return text;
}

std::string difference_text(double ours, double papers, const Style& style) {
  if (!std::isfinite(ours) || !std::isfinite(papers)) return "–";
  return fmt::format("{:+.{}f}", (ours - papers) * style.scale, style.digits);
}

// Numbers in names count as numbers: epochs_2 comes before epochs_10.
bool is_before(std::string_view a, std::string_view b) {
  const auto take_digits = [](std::string_view& text) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    const std::string_view digits_a = take_digits(a), digits_b = take_digits(b);
    if (digits_a.size() != digits_b.size() && !digits_a.empty() && !digits_b.empty()) {
      return digits_a.size() < digits_b.size();
    }
    if (digits_a != digits_b) return digits_a < digits_b;
    if (a.empty() || b.empty()) break;
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

// Rows that have results and are not among the paper's.
std::vector<std::string_view> extra_rows(std::string_view name, const PaperTable* table,
                                         std::span<const Result> results) {
  std::vector<std::string_view> rows;
  for (const Result& result : results) {
    if (result.table == name) rows.push_back(result.row);
  }
  if (table != nullptr) {
    for (const PaperRow& row : table->rows) std::erase(rows, row.name);
  }
  std::sort(rows.begin(), rows.end(), is_before);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

double value_of(const Result& result, std::string_view name) {
  for (const auto& [key, value] : result.metrics) {
    if (key == name) return value;
  }
  return kNotThere;
}

// How many, how long each took in the order of seeds, where, and when the last of them ran.
std::string runs_text(std::vector<const Result*> runs) {
  if (runs.empty()) return "not run";
  std::sort(runs.begin(), runs.end(),
            [](const Result* a, const Result* b) { return a->seed < b->seed; });
  std::vector<std::string> seconds, devices;
  std::string date;
  std::int64_t refused = 0;
  for (const Result* run : runs) {
    refused += run->refused_rounds;
    seconds.push_back(fmt::format("{:.{}f}", run->seconds, run->seconds < 10 ? 1 : 0));
    const bool known = std::find(devices.begin(), devices.end(), run->device) != devices.end();
    if (!run->device.empty() && !known) devices.push_back(run->device);
    date = std::max(date, run->date.substr(0, run->date.find('T')));
  }
  std::string text =
      fmt::format("{} seed{}, {} rounds; {} s", runs.size(), runs.size() == 1 ? "" : "s",
                  runs.front()->rounds, fmt::join(seconds, ", "));
  if (!devices.empty()) text += fmt::format("; {}", fmt::join(devices, "; "));
  if (!date.empty()) text += fmt::format(", {}", date);
  if (refused > 0) text += fmt::format("; rounds with refused answers: {}", refused);
  return text;
}

Spread ours_of(const std::vector<const Result*>& runs, std::string_view measure) {
  std::vector<double> values;
  for (const Result* run : runs) values.push_back(value_of(*run, measure));
  return spread_of(values);
}

// A row of the paper's: a line per measure.
void add_row(const PaperTable& table, const PaperRow& row, const std::vector<const Result*>& runs,
             ComparisonTable& out) {
  for (std::size_t i = 0; i < table.measures.size(); ++i) {
    const Measure& measure = table.measures[i];
    const Style style = style_of(&table, measure);
    const PaperValue& paper = row.values[i];
    const Spread ours = ours_of(runs, measure.name);
    const Spread papers{paper.mean, paper.deviation, std::size_t(paper.reached), 5};
    out.rows.push_back({i == 0 ? std::string(row.title) : "", std::string(measure.title),
                        text_of(papers, style), text_of(ours, style),
                        difference_text(ours.mean, paper.mean, style),
                        i == 0 ? runs_text(runs) : ""});
  }
}

ComparisonTable beside_the_paper(const PaperTable& table, std::span<const Result> results,
                                 bool only_ours) {
  ComparisonTable out{.columns = {"row", "measure", "paper", "ours", "difference", "runs"},
                      .rows = {}};
  for (const PaperRow& row : table.rows) {
    const auto runs = results_of_row(results, table.name, row.name);
    if (!runs.empty() || !only_ours) add_row(table, row, runs, out);
  }
  return out;
}

// The measures of a table that is in no list: whatever its results have.
std::vector<Measure> measures_in(std::string_view name, std::span<const Result> results) {
  std::vector<Measure> measures;
  for (const Result& result : results) {
    if (result.table != name) continue;
    for (const auto& [metric, value] : result.metrics) {
      const auto same = [&](const Measure& measure) { return measure.name == metric; };
      if (std::any_of(measures.begin(), measures.end(), same)) continue;
      measures.push_back({.name = metric, .metric = metric, .title = metric});
    }
  }
  return measures;
}

// A line per row, where there are no published numbers to stand beside.
ComparisonTable side_by_side(std::string_view name, const PaperTable* table,
                             std::span<const Result> results) {
  const std::vector<std::string_view> rows = extra_rows(name, table, results);
  if (rows.empty()) return {};
  const std::vector<Measure> measures =
      table != nullptr ? std::vector<Measure>(table->measures.begin(), table->measures.end())
                       : measures_in(name, results);
  ComparisonTable out{.columns = {"row"}, .rows = {}};
  for (const Measure& measure : measures) out.columns.emplace_back(measure.title);
  out.columns.emplace_back("runs");
  for (const std::string_view row : rows) {
    const auto runs = results_of_row(results, name, row);
    Row& line = out.rows.emplace_back(Row{std::string(row)});
    for (const Measure& measure : measures) {
      line.push_back(text_of(ours_of(runs, measure.name), style_of(table, measure)));
    }
    line.push_back(runs_text(runs));
  }
  return out;
}

std::string markdown_row(const Row& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += fmt::format(" {} |", cell);
  return text + "\n";
}

std::string markdown(const ComparisonTable& table) {
  if (table.rows.empty()) return "";
  std::string text = markdown_row(table.columns) + "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) text += "---|";
  text += "\n";
  for (const Row& row : table.rows) text += markdown_row(row);
  return text;
}

}  // namespace

ComparisonTable comparison_table(std::string_view name, std::span<const Result> results,
                                 bool only_ours) {
  const PaperTable* table = find_paper_table(name);
  if (table == nullptr || table->rows.empty()) return side_by_side(name, table, results);
  return beside_the_paper(*table, results, only_ours);
}

ComparisonTable ours_alone(std::string_view name, std::span<const Result> results) {
  const PaperTable* table = find_paper_table(name);
  if (table == nullptr || table->rows.empty()) return {};
  return side_by_side(name, table, results);
}

std::string comparison(std::string_view name, std::span<const Result> results, bool only_ours) {
  const PaperTable* table = find_paper_table(name);
  const std::string text = markdown(comparison_table(name, results, only_ours));
  if (table == nullptr || table->rows.empty()) return text.empty() ? "Not run.\n" : text;
  const std::string ours = markdown(ours_alone(name, results));
  if (ours.empty()) return text;
  return text.empty() ? ours : fmt::format("{}\nOurs alone:\n\n{}", text, ours);
}

std::string spread_text(std::span<const double> values, double scale, int digits) {
  return text_of(spread_of(values), {scale, digits});
}

std::string with_tables(std::string_view text, std::span<const Result> results,
                        std::string_view source) {
  constexpr std::string_view kOpen = "<!-- ", kClose = " -->", kEnd = "<!-- end -->";
  std::string out;
  while (true) {
    // The next place of a table; other comments are the author's own.
    std::size_t begin = text.find(kOpen), after = begin;
    std::string_view name;
    for (; begin != text.npos; begin = text.find(kOpen, begin + 1)) {
      const std::size_t close = text.find(kClose, begin);
      if (close == text.npos) continue;
      name = text.substr(begin + kOpen.size(), close - begin - kOpen.size());
      after = close + kClose.size();
      const bool has_results = std::any_of(results.begin(), results.end(),
                                           [&](const Result& r) { return r.table == name; });
      if (find_paper_table(name) != nullptr || has_results) break;
    }
    if (begin == text.npos) return out += text;
    const std::size_t end = text.find(kEnd, after);
    if (end == text.npos || text.substr(after, end - after).find(kOpen) != text.npos) {
      throw InputError(
          fmt::format("{}: <!-- {} --> must be followed by {}, but is not", source, name, kEnd));
    }
    out += text.substr(0, after);
    out += fmt::format("\n\n{}\n{}", comparison(name, results), kEnd);
    text.remove_prefix(end + kEnd.size());
  }
}

std::vector<std::string> tables_of(std::span<const Result> results) {
  std::vector<std::string> names;
  for (const Result& result : results) {
    if (std::find(names.begin(), names.end(), result.table) == names.end()) {
      names.push_back(result.table);
    }
  }
  return names;
}

}  // namespace fedep
