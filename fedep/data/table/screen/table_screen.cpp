#include "fedep/data/table/screen/table_screen.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// Of a column's squares. Values that make up less can move a coefficient by about a third of its
// deviation, whatever they are.
constexpr double kHarmless = 0.02;

bool fits(const ColumnScreen& screen, double value) {
  return !(value < screen.low) && !(value > screen.high);
}

// Of all clients' rows around their mean.
double squares_of(std::span<const ColumnSums> clients) {
  double count = 0, sum = 0, squares = 0;
  for (const ColumnSums& client : clients) {
    count += client.count;
    sum += client.sum;
  }
  for (const ColumnSums& client : clients) {
    if (client.count == 0) continue;
    const double gap = client.sum / client.count - sum / count;
    squares += client.squares + client.count * gap * gap;
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

bool is_suspected(const ColumnScreen& screen, std::size_t client, const ColumnSummary& sent) {
  return sent.count > 0 &&
         (screen.is_stranger(client) || !fits(screen, sent.least) || !fits(screen, sent.most));
}

std::string why_suspected(const ColumnScreen& screen, std::size_t client, const ColumnSummary& sent,
                          double accepted) {
  const Stranger* const stranger = screen.find_stranger(client);
  return stranger != nullptr ? stranger->why : values_text(sent, screen, accepted);
}

}  // namespace

ScreenedScale screened_scale(std::span<const std::string> clients,
                             std::span<const std::string> columns, const ValuesOf& values_of) {
  ScreenedScale out;
  std::vector<ColumnSummary> sent(clients.size());
  std::vector<ColumnSums> all(clients.size());
  std::vector<double> values;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t c = 0; c < clients.size(); ++c) {
      values_of(c, j, values);
      all[c] = sums_of(values);
      sent[c] = summary_of(values);
    }
    out.screens.push_back(screen_column(sent));
    const ColumnScreen& screen = out.screens.back();
    std::vector<std::size_t> suspected;
    for (std::size_t c = 0; c < clients.size(); ++c) {
      if (is_suspected(screen, c, sent[c])) suspected.push_back(c);
    }
    out.all.push_back(pooled(all));
    out.accepted.push_back(out.all.back());
    if (suspected.empty()) continue;
    const double squares = squares_of(all);
    for (const std::size_t c : suspected) {
      values_of(c, j, values);
      const bool none = screen.is_stranger(c);
      std::erase_if(values, [&](double value) { return none || !fits(screen, value); });
      all[c] = sums_of(values);
    }
    out.accepted.back() = pooled(all);
    const double left = squares_of(all);
    const double share = std::isfinite(squares) && squares > 0 ? 1 - left / squares : 1;
    for (const std::size_t c : suspected) {
      out.suspicions.push_back(
          {.column = j,
           .client = c,
           .whole = screen.is_stranger(c),
           .text = fmt::format("column {} of client {}: {}", shown(columns[j]), shown(clients[c]),
                               why_suspected(screen, c, sent[c], all[c].count)),
           .share = share});
    }
  }
  return out;
}

std::optional<ScaleHarm> harm_of(const ScreenedScale& screened) {
  std::vector<Suspicion> harmful;
  for (const Suspicion& suspicion : screened.suspicions) {
    if (suspicion.share >= kHarmless) harmful.push_back(suspicion);
  }
  if (harmful.empty()) return std::nullopt;
  const Suspicion& first = harmful.front();
  return ScaleHarm{
      first.whole,
      fmt::format(
          "{}; this makes up {:.0f} % of the column's variance, by which all clients' values would "
          "be scaled{}. Mend the table, or let data.scale = \"robust\" take {} as missing (false "
          "scales "
          "and checks nothing)",
          first.text, 100 * std::min(first.share, 1.0),
          harmful.size() > 1 ? fmt::format(", and {} more are suspected", harmful.size() - 1) : "",
          first.whole ? "the client's column" : "such values")};
}

void check_harmless(const ScreenedScale& screened, const std::string& source) {
  const std::optional<ScaleHarm> harm = harm_of(screened);
  if (harm) throw InputError(fmt::format("{}: {}", source, harm->text));
}

std::vector<ColumnScale> plain_scale(const ScreenedScale& screened) {
  std::vector<ColumnScale> scales;
  for (const ColumnSums& sums : screened.all) scales.push_back(scale_of(sums));
  return scales;
}

std::vector<ColumnScale> robust_scale(const ScreenedScale& screened) {
  std::vector<ColumnScale> scales;
  for (std::size_t j = 0; j < screened.screens.size(); ++j) {
    scales.push_back(scale_of(screened.accepted[j]));
    scales.back().low = screened.screens[j].low;
    scales.back().high = screened.screens[j].high;
  }
  return scales;
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
