#include "fedep/data/table/table_screen.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
// Of a column's squares. Values that make up less can move a coefficient by about a third of its
// deviation, whatever they are.
constexpr double kHarmless = 0.02;

bool fits(const ColumnScreen& screen, double value) {
  return !(value < screen.low) && !(value > screen.high);
}

// What is left of a client's rows.
void keep_accepted(const std::vector<ColumnScreen>& screens, std::size_t client, TableRow& row) {
  for (std::size_t j = 0; j < row.numbers.size(); ++j) {
    if (screens[j].is_stranger(client) || !fits(screens[j], row.numbers[j])) {
      row.numbers[j] = kMissing;
    }
  }
}

// Of all clients' rows around their mean.
double squares_of(const std::vector<ClientReport>& reports, std::size_t column) {
  double count = 0, sum = 0, squares = 0;
  for (const ClientReport& report : reports) {
    if (column >= report.numbers.size()) continue;
    count += report.numbers[column].count;
    sum += report.numbers[column].sum;
  }
  for (const ClientReport& report : reports) {
    if (column >= report.numbers.size() || report.numbers[column].count == 0) continue;
    const ColumnSums& sums = report.numbers[column];
    const double gap = sums.sum / sums.count - sum / count;
    squares += sums.squares + sums.count * gap * gap;
  }
  return squares;
}

std::string values_text(const ColumnSummary& summary, const ColumnScreen& screen, double accepted) {
  const double beyond = summary.count - accepted;
  const double farthest = summary.most > screen.high ? summary.most : summary.least;
  return fmt::format("{} of {} values {} beyond {:.3g} to {:.3g}, {:.6g} the farthest", beyond,
                     summary.count, beyond == 1 ? "lies" : "lie", screen.low, screen.high,
                     farthest);
}

}  // namespace

ScreenedScale screened_scale(std::span<const std::string> clients,
                             std::span<const std::string> columns, const TrainingRows& rows_of) {
  ScreenedScale out;
  std::vector<std::vector<ColumnSummary>> sent(clients.size());
  for (std::size_t c = 0; c < clients.size(); ++c) {
    const std::span<const TableRow> rows = rows_of(c);
    out.reports.push_back(report(rows));
    sent[c] = summaries(rows);
    sent[c].resize(columns.size());
  }
  for (std::size_t j = 0; j < columns.size(); ++j) {
    std::vector<ColumnSummary> column;
    for (const auto& client : sent) column.push_back(client[j]);
    out.screens.push_back(screen_column(column));
  }
  const auto suspected = [&](std::size_t c, std::size_t j) {
    const ColumnSummary& summary = sent[c][j];
    return summary.count > 0 &&
           (out.screens[j].is_stranger(c) || !fits(out.screens[j], summary.least) ||
            !fits(out.screens[j], summary.most));
  };
  for (std::size_t c = 0; c < clients.size(); ++c) {
    bool any = false;
    for (std::size_t j = 0; j < columns.size(); ++j) any = any || suspected(c, j);
    if (any && out.accepted.empty()) out.accepted = out.reports;
    if (!any) continue;
    const std::span<TableRow> rows = rows_of(c);
    for (TableRow& row : rows) keep_accepted(out.screens, c, row);
    out.accepted[c] = report(rows);
  }
  if (out.accepted.empty()) return out;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const double all = squares_of(out.reports, j), left = squares_of(out.accepted, j);
    for (std::size_t c = 0; c < clients.size(); ++c) {
      if (!suspected(c, j)) continue;
      Suspicion suspicion{.column = j, .client = c, .whole = false, .text = {}, .share = 0};
      for (const Stranger& stranger : out.screens[j].strangers) {
        if (stranger.client != c) continue;
        suspicion.whole = true;
        suspicion.text = stranger.why;
      }
      if (!suspicion.whole) {
        suspicion.text = values_text(sent[c][j], out.screens[j], out.accepted[c].numbers[j].count);
      }
      suspicion.text = fmt::format("column {} of client {}: {}", shown(columns[j]),
                                   shown(clients[c]), suspicion.text);
      suspicion.share = std::isfinite(all) && all > 0 ? 1 - left / all : 1;
      out.suspicions.push_back(std::move(suspicion));
    }
  }
  return out;
}

void check_harmless(const ScreenedScale& screened, const std::string& source) {
  std::vector<Suspicion> harmful;
  for (const Suspicion& suspicion : screened.suspicions) {
    if (suspicion.share >= kHarmless) harmful.push_back(suspicion);
  }
  if (harmful.empty()) return;
  const Suspicion& first = harmful.front();
  throw InputError(fmt::format(
      "{}: {}; this makes up {:.0f} % of the column's variance, by which all clients' values would "
      "be scaled{}. Mend the table, or let data.scale = \"robust\" take {} as missing (false "
      "scales "
      "and checks nothing)",
      source, first.text, 100 * std::min(first.share, 1.0),
      harmful.size() > 1 ? fmt::format(", and {} more are suspected", harmful.size() - 1) : "",
      first.whole ? "the client's column" : "such values"));
}

TableScale robust_scale(const ScreenedScale& screened) {
  TableScale scale = pooled_scale(screened.accepted.empty() ? screened.reports : screened.accepted);
  for (std::size_t j = 0; j < scale.numbers.size(); ++j) {
    scale.numbers[j].low = screened.screens[j].low;
    scale.numbers[j].high = screened.screens[j].high;
  }
  return scale;
}

void forget(const ScreenedScale& screened, std::size_t client, TableRow& row) {
  for (std::size_t j = 0; j < screened.screens.size(); ++j) {
    if (screened.screens[j].is_stranger(client)) row.numbers[j] = kMissing;
  }
}

std::vector<std::string> told(std::span<const Suspicion> suspicions, bool robust) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> lines;
  for (const Suspicion& suspicion : suspicions.first(std::min(kMost, suspicions.size()))) {
    lines.push_back(
        suspicion.text +
        (robust
             ? suspicion.whole ? "; the client's column is taken as missing" : "; taken as missing"
             : "; too little to matter, data.scale = \"robust\" takes it as missing"));
  }
  if (suspicions.size() > kMost) {
    lines.push_back(
        fmt::format("and {} more columns of clients have values that do not fit the "
                    "others'",
                    suspicions.size() - kMost));
  }
  return lines;
}

}  // namespace fedep
