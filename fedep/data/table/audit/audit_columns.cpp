#include "fedep/data/table/audit/audit_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// Columns of the audit are the outcome, where it is a number, then numbers, then categories.
std::size_t first_number(const AuditView& view) { return view.has_number_outcome() ? 1 : 0; }

double value_of(const AuditView& view, const TableAudit& audit, std::size_t column,
                std::uint32_t row) {
  if (audit.columns[column].use == ColumnUse::outcome) return view.table.label_number(row);
  return view.table.number(row, column - first_number(view));
}

// Whether a code lies so far from all other values, or is so alone in its sign, that it is hardly one
// of them.
bool is_apart(double code, const ColumnReport& column) {
  constexpr double kFewOthers = 5, kGap = 0.5;
  const ValueRange& others = column.others;
  double coded = 0;
  for (const auto& [value, rows] : column.codes) coded += rows;
  if (others.empty() || column.values.count - coded < kFewOthers) return false;
  if (code >= others.least && code <= others.most) return false;
  const double gap = code < others.least ? others.least - code : code - others.most;
  if (others.varies() && gap >= kGap * (others.most - others.least)) return true;
  if (!others.varies()) return std::fabs(code) > 10 * std::fabs(others.most);
  const bool only_negative = code < 0 && others.least >= 0;
  if (code == -1) return only_negative && !column.whole;
  return only_negative;
}

std::string rows_text(std::size_t rows) {
  return fmt::format("{} {}", rows, rows == 1 ? "row" : "rows");
}

}  // namespace

void find_missing_codes(const AuditView& view, bool answered, TableAudit& audit) {
  for (std::size_t j = 0; j < audit.columns.size(); ++j) {
    const AuditColumn& column = audit.columns[j];
    for (const auto& [code, reported] : column.all.codes) {
      if (!is_apart(code, column.all)) continue;
      CountByClient counts;
      std::size_t rows = 0;
      std::uint32_t first = UINT32_MAX;
      for (std::size_t c = 0; c < view.size(); ++c) {
        for (const std::uint32_t row : view.rows(c)) {
          if (value_of(view, audit, j, row) != code) continue;
          ++counts[c];
          ++rows;
          first = std::min(first, row);
        }
      }
      audit.findings.push_back(
          {"missing-code", !answered,
           fmt::format(
               "column {} has {:g} in {} ({}; {} the first), and all else lies in {:g} to "
               "{:g}; {}",
               shown(column.name), code, rows_text(rows), shown_counts(counts, view.clients.ids),
               view.table.marks.place(first), column.all.others.least, column.all.others.most,
               answered ? "data.missing does not name it, so it counts as a number"
                        : fmt::format("if it stands for a missing value, say so in "
                                      "data.missing = [\"{:g}\", \"NA\", …]; if it is a number, "
                                      "name the others there, or just \"NA\"",
                                      code))});
    }
  }
}

void find_missing_columns(const AuditView& view, const std::vector<std::vector<EmptyColumn>>& empty,
                          TableAudit& audit) {
  constexpr double kNearlyAll = 0.9, kFewest = 10, kByChance = 1e-3;
  constexpr std::size_t kMostNamed = 8;
  std::map<CountByClient, std::vector<std::string>>
      missing_at;  // columns that lack at the same clients
  for (std::size_t j = 0; j < audit.columns.size(); ++j) {
    const AuditColumn& column = audit.columns[j];
    const double rows = column.all.rows, missing = column.all.missing();
    if (rows >= kFewest && missing >= kNearlyAll * rows) {
      audit.findings.push_back(
          {"mostly-missing", false,
           missing == rows
               ? fmt::format("column {} has no value in any of {:.0f} rows", shown(column.name),
                             rows)
               : fmt::format(
                     "column {} has a value in {:.0f} of {:.0f} rows; {:.0f} % are missing, and "
                     "stand at the mean of the others",
                     shown(column.name), rows - missing, rows, 100 * missing / rows)});
    }
    if (missing == rows) continue;
    CountByClient clients;
    for (const EmptyColumn& one : empty[j]) {
      // What is missing elsewhere may be missing in a few rows by chance.
      const double part = (missing - one.rows + 1) / (rows - one.rows + 2);
      if (std::pow(part, one.rows) < kByChance) clients[one.client] = std::size_t(one.rows);
    }
    if (!clients.empty()) missing_at[clients].push_back(column.name);
  }
  for (const auto& [clients, columns] : missing_at) {
    audit.findings.push_back(
        {"missing-at-client", false,
         fmt::format("column{} {} {} no value in any row of {} of {} clients ({}); there {} at the "
                     "mean of the others",
                     columns.size() > 1 ? "s" : "", shown_list(columns, kMostNamed),
                     columns.size() > 1 ? "have" : "has", clients.size(), view.size(),
                     shown_counts(clients, view.clients.ids),
                     columns.size() > 1 ? "they stand" : "it stands")});
  }
}

bool is_name_of_ids(const std::string& column) {
  static constexpr std::array<std::string_view, 11> kEndings = {
      "id", "ids", "mrn", "pid", "uid", "uuid", "ssn", "identifier", "nr", "no", "key"};
  static constexpr std::array<std::string_view, 8> kWhole = {
      "patient", "subject", "record", "encounter", "participant", "index", "rowid", "unnamed"};
  static constexpr std::array<std::string_view, 12> kBefore = {
      "patient", "subject", "record", "case",   "encounter", "stay",
      "person",  "study",   "visit",  "sample", "hospital",  "unique"};
  std::vector<std::string> words{""};
  for (std::size_t i = 0; i < column.size(); ++i) {
    const char c = column[i];
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    const bool begins = upper && i > 0 && column[i - 1] >= 'a' && column[i - 1] <= 'z';
    if ((begins || !(upper || lower)) && !words.back().empty()) words.emplace_back();
    if (upper || lower) words.back() += upper ? char(c - 'A' + 'a') : c;
  }
  std::erase(words, "");
  if (words.empty()) return false;
  const std::string& last = words.back();
  if (words.size() == 1 && std::ranges::find(kWhole, last) != kWhole.end()) return true;
  if (std::ranges::find(kEndings, last) != kEndings.end()) {
    const bool weak = last == "no" || last == "nr" || last == "key";
    return !weak || (words.size() > 1 &&
                     std::ranges::find(kBefore, words[words.size() - 2]) != kBefore.end());
  }
  return last.ends_with("id") && std::ranges::any_of(kBefore, [&](std::string_view stem) {
           return last.starts_with(stem);
         });
}

void find_ids_as_numbers(TableAudit& audit) {
  constexpr double kMost = 0.8, kFewest = 20;
  for (const AuditColumn& column : audit.columns) {
    const ColumnReport& all = column.all;
    if (column.use != ColumnUse::number || !all.whole || all.values.count == 0) continue;
    const bool counts = all.values.count >= kFewest && all.names >= kMost * all.values.count;
    const bool named = is_name_of_ids(column.name) && all.range.most - all.range.least > 1;
    if (!counts && !named) continue;
    audit.findings.push_back(
        {"id-as-number", false,
         fmt::format("column {} looks like names of rows, not like a measurement ({}, {:.0f} to "
                     "{:.0f}), and is learned from; if it is, say data.id_column or data.drop, "
                     "or data.group_column if it says whose rows belong together",
                     shown(column.name),
                     counts ? "whole numbers, hardly any of them twice" : "by what it is called",
                     all.range.least, all.range.most)});
  }
}

void find_many_levels(TableAudit& audit) {
  constexpr std::size_t kMany = 100, kSome = 20;
  constexpr double kFewRows = 5;
  for (const AuditColumn& column : audit.columns) {
    const std::size_t levels = column.all.levels.size();
    const double rows = column.all.values.count;
    if (levels <= kMany && (levels < kSome || double(levels) * kFewRows <= rows)) continue;
    const auto rare = std::ranges::count_if(
        column.all.levels, [&](const auto& level) { return level.second.rows < kFewRows; });
    audit.findings.push_back(
        {"many-levels", false,
         fmt::format(
             "column {} has {} values in {:.0f} rows, {} of them in fewer than {:.0f}; each "
             "is a coefficient: put values together, or name the column in data.drop (or, if "
             "it names rows, in data.id_column)",
             shown(column.name), levels, rows, rare, kFewRows)});
  }
}

void find_separation(const AuditView& view, TableAudit& audit) {
  constexpr std::size_t kMostNamed = 4;
  const bool yes_no = view.spec.target == TargetKind::binary;
  if (!view.has_events() || audit.events == 0 || (yes_no && audit.events == audit.rows)) return;
  for (std::size_t j = 0; j < audit.columns.size(); ++j) {
    const AuditColumn& column = audit.columns[j];
    const ColumnReport& all = column.all;
    if (column.use == ColumnUse::number && all.range.varies() && !all.with_events.empty() &&
        !all.without_events.empty()) {
      const ValueRange &with = all.with_events, &without = all.without_events;
      const bool above = with.least >= without.most, below = with.most <= without.least;
      if (!(yes_no && (above || below))) continue;
      audit.findings.push_back(
          {"separation", false,
           fmt::format("column {} tells the outcome without fail: rows that have it lie in {:g} to "
                       "{:g} ({:.0f} rows), the others in {:g} to {:g} ({:.0f}); the data set its "
                       "coefficient no bound, only the prior does. Is it known before the outcome?",
                       shown(column.name), with.least, with.most, all.events, without.least,
                       without.most, all.values.count - all.events)});
    }
    if (column.use != ColumnUse::category || all.levels.size() < 2) continue;
    std::vector<std::string> none, only;
    for (const auto& [value, level] : all.levels) {
      const bool never = level.events == 0, always = yes_no && level.events == level.rows;
      if (!never && !always) continue;
      (never ? none : only).push_back(fmt::format("{} ({:.0f})", shown(value), level.rows));
    }
    if (none.empty() && only.empty()) continue;
    const auto part = [&](const std::vector<std::string>& values, std::string_view what) {
      if (values.empty()) return std::string();
      const auto named = std::min(kMostNamed, values.size());
      return fmt::format(
          "{} in {}{}", what, fmt::join(values.begin(), values.begin() + long(named), ", "),
          values.size() > named ? fmt::format(" and {} more", values.size() - named) : "");
    };
    const std::string no = part(none, "no row has the outcome"),
                      yes = part(only, "every row has the outcome");
    audit.findings.push_back(
        {"separation", false,
         fmt::format(
             "column {}: {}{}{} (rows in brackets); the data set these coefficients no bound, "
             "only the prior does",
             shown(column.name), no, no.empty() || yes.empty() ? "" : "; ", yes)});
  }
}

void find_duplicated_columns(const AuditView& view, TableAudit& audit) {
  const auto same = [&](std::size_t a, std::size_t b) {
    const std::size_t numbers = first_number(view), categories = numbers + view.spec.numbers.size();
    for (std::size_t c = 0; c < view.size(); ++c) {
      for (const std::uint32_t row : view.rows(c)) {
        if (audit.columns[a].use == ColumnUse::category) {
          if (view.table.category(row, a - categories) !=
              view.table.category(row, b - categories)) {
            return false;
          }
          continue;
        }
        const double x = value_of(view, audit, a, row), y = value_of(view, audit, b, row);
        if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
      }
    }
    return true;
  };
  std::vector<bool> told(audit.columns.size());
  for (std::size_t a = 0; a < audit.columns.size(); ++a) {
    const ColumnReport& one = audit.columns[a].all;
    if (told[a] || (one.range.empty() && one.levels.empty())) continue;
    for (std::size_t b = a + 1; b < audit.columns.size(); ++b) {
      const ColumnReport& other = audit.columns[b].all;
      const bool categories = audit.columns[a].use == ColumnUse::category;
      const bool may = (audit.columns[b].use == ColumnUse::category) == categories &&
                       one.values == other.values && one.range == other.range &&
                       one.levels == other.levels;
      if (told[b] || !may || (!categories && !one.range.varies()) || !same(a, b)) continue;
      told[b] = true;
      audit.copies.push_back(audit.columns[b].name);
      const bool outcome = audit.columns[a].use == ColumnUse::outcome;
      audit.findings.push_back(
          {outcome ? "outcome-among-features" : "duplicated-columns", false,
           fmt::format(
               "columns {} and {} are the same in every row{}; name one of them in data.drop",
               shown(audit.columns[a].name), shown(audit.columns[b].name),
               outcome ? ", and the first is the outcome" : "")});
    }
  }
}

}  // namespace fedep
