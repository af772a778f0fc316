#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "app/posterior/coefficients/coefficient_formats.h"
#include "app/printable.h"
#include "app/text_table.h"
#include "app/trust.h"

namespace fedep {
namespace {

// What intervals rest on.
constexpr const char* kCorrelated =
    "Intervals take columns for uncorrelated. One that goes together with others has too narrow "
    "an\n"
    "interval, about by the root of its variance inflation (fedep data describe; "
    "docs/hospitals.md).\n";
constexpr const char* kFull =
    "Intervals know how columns correlate: the posterior has a full covariance matrix.\n";
constexpr const char* kCurvature =
    "Intervals know how columns correlate: they are of a last round of curvature, the Hessian of\n"
    "all clients' rows at the mean ({:.2g} sd from the mode).\n";
constexpr const char* kStart =
    "alpha's: the part of a coefficient's precision that is still what factors began with, not\n"
    "inferred.\n";
constexpr const char* kNoise =
    "The outcome is taken to have a standard deviation of {} around its prediction (model.noise);\n"
    "where that is wrong by a factor, intervals are too.\n";
constexpr const char* kShares =
    "Of all precision that the posterior has, averaged over what it knows: many rows, and rows "
    "that\n"
    "tell columns apart, weigh more. It says whose data the table rests on, not whose are "
    "better.\n";
constexpr std::size_t kMostShares = 30;

// Cells in columns, the first one to the left and the others to the right.
class TextGrid {
 public:
  void add(std::vector<std::string> row) {
    for (std::string& cell : row) cell = printable(cell);
    rows_.push_back(std::move(row));
  }
  std::string str() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) {
        widths[i] = std::max(widths[i], screen_width(row[i]));
      }
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string pad(widths[i] - screen_width(row[i]), ' ');
        line += i == 0 ? row[i] + pad : "  " + pad + row[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string interval_text(const EffectText& text) {
  return text.low.empty() ? "" : fmt::format("{} to {}", text.low, text.high);
}

std::string with_interval(const Effect& effect, EffectScale scale) {
  const EffectText text = effect_text(effect.estimate, effect.interval, scale);
  return text.low.empty() ? text.estimate
                          : fmt::format("{} ({})", text.estimate, interval_text(text));
}

bool has_ratio(const CoefficientTable& table, const Coefficient& row) {
  return table.effect != EffectKind::difference &&
         (row.kind == RowKind::effect || row.kind == RowKind::contrast);
}

std::string head_text(const CoefficientTable& table, EffectUnit unit) {
  const bool is_scaled = unit == EffectUnit::standardised && table.scaled;
  std::string out =
      fmt::format("{}, {} after {} rounds\n", table.data, table.algorithm, table.round);
  std::string what = "the " + change_name(table);
  if (table.effect == EffectKind::difference && !table.outcome.empty()) {
    what = table.outcome;
  } else if (!table.outcome.empty()) {
    what += " of " + table.outcome;
  }
  if (!table.reference.empty()) what += ", of each class against " + table.reference + ",";
  out += fmt::format("Change of {} for one {}\n", what,
                     is_scaled ? "standard deviation of the column"
                               : "unit of the column, or of a level against its reference");
  return out;
}

std::string table_text(const CoefficientTable& table, const std::string& of_class,
                       EffectUnit unit) {
  const bool begun = table.has_intervals() && table.rows[0].start_share.has_value();
  const std::string interval = level_text(table.level) + " interval";
  TextGrid grid;
  std::vector<std::string> head{"coefficient", table.has_intervals() ? "mean" : "estimate"};
  const bool has_deviations = table.has_intervals() && unit == EffectUnit::standardised;
  if (has_deviations) head.emplace_back("sd");
  if (table.has_intervals()) head.push_back(interval);
  if (table.effect != EffectKind::difference) {
    head.push_back(ratio_name(table));
    if (table.has_intervals()) head.push_back(interval);
  }
  if (begun) head.emplace_back("alpha's");
  grid.add(std::move(head));
  for (const Coefficient& row : table.rows) {
    if (row.of_class != of_class || row.kind == RowKind::spread) continue;
    const Effect effect = effect_of(table, row, unit);
    const EffectText text = effect_text(effect.estimate, effect.interval, EffectScale::difference);
    std::vector<std::string> cells{unit == EffectUnit::own ? own_name(row) : row.name,
                                   text.estimate};
    if (has_deviations)
      cells.push_back(effect_text(*row.deviation, {}, EffectScale::difference).estimate);
    if (table.has_intervals()) cells.push_back(interval_text(text));
    if (table.effect != EffectKind::difference) {
      EffectText ratio;
      if (has_ratio(table, row)) {
        const Effect e = exponential(effect);
        ratio = effect_text(e.estimate, e.interval, EffectScale::ratio);
      }
      cells.push_back(ratio.estimate);
      if (table.has_intervals()) cells.push_back(interval_text(ratio));
    }
    if (begun)
      cells.push_back(row.start_share ? fmt::format("{:.1f} %", 100 * *row.start_share) : "");
    grid.add(std::move(cells));
  }
  return grid.str();
}

bool has_spread(const CoefficientTable& table, std::string_view name) {
  return std::ranges::find(table.rows, name, &Coefficient::name) != table.rows.end();
}

// What the intercept stands for, on a scale that people think in.
std::string intercept_text(const CoefficientTable& table) {
  std::string out = table.scaled
                        ? "The intercept belongs to a row with every column at its mean"
                        : "The intercept belongs to a row of zeros, at every category's reference";
  if (has_spread(table, "log_site_sd")) out += ", in the middle of all hospitals";
  const auto found = std::ranges::find(table.rows, RowKind::intercept, &Coefficient::kind);
  if (found == table.rows.end() || !table.reference.empty()) return out + ".\n";
  const Effect effect = effect_of(table, *found, EffectUnit::own);
  if (table.effect == EffectKind::odds) {
    const auto risk = [](double x) { return 1 / (1 + std::exp(-x)); };
    Effect at{risk(effect.estimate)};
    if (effect.interval)
      at.interval = {risk(effect.interval->first), risk(effect.interval->second)};
    out += fmt::format(", whose risk is {}", with_interval(at, EffectScale::ratio));
  } else if (table.effect == EffectKind::rate) {
    out += fmt::format(", whose mean count is {}{}",
                       with_interval(exponential(effect), EffectScale::ratio),
                       table.has_exposure ? " for one unit of exposure" : "");
  }
  return out + ".\n";
}

std::string spreads_text(const CoefficientTable& table) {
  std::string out;
  for (const Coefficient& row : table.rows) {
    if (row.kind != RowKind::spread) continue;
    out += fmt::format(
        "Standard deviation of {}: {}\n", spread_name(row),
        with_interval(exponential(effect_of(table, row, EffectUnit::own)), EffectScale::ratio));
  }
  return out;
}

// Who the information is from.
std::string overall_shares(const CoefficientTable& table) {
  if (table.shares.empty()) {
    return table.shares_note.empty()
               ? ""
               : fmt::format("Clients' shares of the information are not known: {}.\n",
                             table.shares_note);
  }
  std::vector<std::size_t> order(table.shares.size() - 1);  // behind the prior
  std::iota(order.begin(), order.end(), 1);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return table.shares[i]; });
  TextGrid grid;
  double rest = 0;
  const std::size_t shown = order.size() <= kMostShares ? order.size() : kMostShares - 1;
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < shown) {
      grid.add({table.share_names[order[i]], percent(table.shares[order[i]])});
    } else {
      rest += table.shares[order[i]];
    }
  }
  if (shown < order.size())
    grid.add({fmt::format("{} others", order.size() - shown), percent(rest)});
  grid.add({table.share_names[0], percent(table.shares[0])});
  std::string out = "\nShares of the information\n" + grid.str() + kShares;
  if (!table.shares_note.empty()) out += fmt::format("Note: {}.\n", table.shares_note);
  return out;
}

}  // namespace

std::string own_name(const Coefficient& row) {
  return row.per == 1 ? row.name : fmt::format("{}, per {:g}", row.name, row.per);
}

std::string spread_name(const Coefficient& row) {
  return row.name == "log_site_sd" ? "hospitals' intercepts"
         : row.name == "log_noise" ? "the outcome around its prediction"
                                   : row.name;
}

std::string no_intervals(const CoefficientTable& table) {
  if (!table.withheld.empty()) {
    const bool is_noted = table.withheld == trust_text(table.verdict);
    return fmt::format("There are no intervals: {}.",
                       is_noted ? "the run is not to be trusted" : table.withheld);
  }
  if (table.has_intervals()) return {};
  return fmt::format("{} estimates no uncertainty.", table.algorithm);
}

std::string coefficients_text(const CoefficientTable& table, EffectUnit unit) {
  std::string out = head_text(table, unit);
  std::string block = table.rows.empty() ? "" : "\n";  // no class has this name
  for (const Coefficient& row : table.rows) {
    if (row.kind == RowKind::spread || row.of_class == block) continue;
    block = row.of_class;
    out += '\n';
    if (!block.empty()) {
      out += fmt::format("{} against {}\n", printable(block), printable(table.reference));
    }
    out += table_text(table, block, unit);
  }
  out += '\n' + spreads_text(table) + intercept_text(table);
  out += table.scaled
             ? "Columns were centred and scaled by sums that the clients reported; a missing value "
               "stands at the mean.\n"
             : "Columns are as they came; a missing value is 0.\n";
  if (table.scaled && unit == EffectUnit::own) {
    out +=
        "fedep coefficients --standardised tells all for one standard deviation of the column.\n";
  }
  const bool has_products = std::ranges::any_of(
      table.rows, [](const Coefficient& row) { return row.term.kind == TermKind::interaction; });
  if (has_products) {
    out +=
        "A column that is part of a product: its own coefficient holds where the other is at its "
        "mean.\n";
  }
  if (table.has_intervals() && table.curvature) {
    out += fmt::format(kCurvature, *table.curvature);
  } else if (table.has_intervals()) {
    out += table.full ? kFull : kCorrelated;
  }
  if (table.has_intervals() && table.rows[0].start_share) out += kStart;
  if (table.has_intervals() && table.likelihood.target == TargetKind::real &&
      !has_spread(table, "log_noise")) {
    out += fmt::format(kNoise, table.likelihood.noise);
  }
  if (const std::string none = no_intervals(table); !none.empty()) out += none + '\n';
  for (const std::string& note : table.notes) out += fmt::format("Note: {}.\n", note);
  return out + overall_shares(table);
}

std::string shares_text(const CoefficientTable& table) {
  if (table.shares.empty()) return overall_shares(table);
  TextGrid grid;
  std::vector<std::string> head{"coefficient"};
  head.insert(head.end(), table.share_names.begin(), table.share_names.end());
  grid.add(std::move(head));
  const auto add = [&](const std::string& name, const std::vector<double>& shares) {
    std::vector<std::string> cells{name};
    for (const double share : shares) cells.push_back(fmt::format("{:.1f} %", 100 * share));
    grid.add(std::move(cells));
  };
  for (const Coefficient& row : table.rows) {
    add(row.of_class.empty() ? row.name : fmt::format("{}: {}", row.of_class, row.name),
        row.shares);
  }
  add("overall", table.shares);
  std::string out = "Shares of the information, by coefficient\n\n" + grid.str() + '\n' + kShares;
  if (!table.shares_note.empty()) out += fmt::format("Note: {}.\n", table.shares_note);
  return out;
}

}  // namespace fedep
