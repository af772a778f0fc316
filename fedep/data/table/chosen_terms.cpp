#include "fedep/data/table/chosen_terms.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/term.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::string_view kAll = "*";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

// A text parted at a sign. Names may have that sign in them, so the first way counts in which `fits` takes
// both parts; without any, the parts at the first sign, and without a sign nothing.
template <class Fits>
std::optional<std::pair<std::string, std::string>> parted(const std::string& text, char sign,
                                                          const Fits& fits) {
  std::optional<std::pair<std::string, std::string>> first;
  for (std::size_t at = text.find(sign); at != text.npos; at = text.find(sign, at + 1)) {
    std::pair parts(trimmed(std::string_view(text).substr(0, at)),
                    trimmed(std::string_view(text).substr(at + 1)));
    if (fits(parts)) return parts;
    if (!first) first = std::move(parts);
  }
  return first;
}

std::vector<std::string> feature_columns(const TableSpec& spec) {
  std::vector<std::string> columns = spec.numbers;
  columns.insert(columns.end(), spec.categories.begin(), spec.categories.end());
  return columns;
}

std::string not_among(std::string_view what, const std::string& name,
                      const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fmt::format("{} is no {}{}", shown(name), what, suggestion(name, candidates));
}

[[noreturn]] void refuse(std::string_view key, std::string_view expected, const std::string& came,
                         const std::string& why) {
  throw InputError(
      fmt::format("data.{} must be {}, but has {}: {}", key, expected, shown(came), why));
}

Interaction interaction_of(const std::string& text, const TableSpec& spec) {
  constexpr std::string_view kExpected = "a list of products of two feature columns, first*second";
  const auto refuse_it = [&](const std::string& why) {
    refuse("interactions", kExpected, text, why);
  };
  const std::vector<std::string> columns = feature_columns(spec);
  const auto parts = parted(text, '*', [&](const auto& both) {
    return contains(columns, both.first) && contains(columns, both.second);
  });
  if (!parts) refuse_it("there is no *");
  for (const std::string* name : {&parts->first, &parts->second}) {
    if (!contains(columns, *name)) refuse_it(not_among("feature column", *name, columns));
  }
  if (parts->first == parts->second && contains(spec.categories, parts->first)) {
    refuse_it("the square of a category says nothing new");
  }
  const auto is_same = [&](const Interaction& other) {
    return std::minmax(other.first, other.second) == std::minmax(parts->first, parts->second);
  };
  if (std::ranges::any_of(spec.interactions, is_same)) refuse_it("it is there twice");
  return {parts->first, parts->second};
}

}  // namespace

void add_terms(const DataSettings& settings, TableSpec& spec) {
  for (const std::string& text : settings.interactions) {
    spec.interactions.push_back(interaction_of(text, spec));
  }
  const std::vector<std::string> columns = feature_columns(spec);
  for (const std::string& name : settings.missing_indicators) {
    constexpr std::string_view kExpected = "a list of feature columns, or [\"*\"]";
    if (name == kAll && settings.missing_indicators.size() > 1 && !contains(columns, name)) {
      refuse("missing_indicators", kExpected, name, "it must stand alone");
    }
    if (name != kAll && !contains(columns, name)) {
      refuse("missing_indicators", kExpected, name, not_among("feature column", name, columns));
    }
    if (contains(spec.missing_indicators, name)) {
      refuse("missing_indicators", kExpected, name, "it is there twice");
    }
    spec.missing_indicators.push_back(name);
  }
}

std::map<std::string, std::string> chosen_references(const DataSettings& settings,
                                                     const TableSpec& spec) {
  constexpr std::string_view kExpected = "a list of column=value, of columns in data.categories";
  std::map<std::string, std::string> out;
  for (const std::string& text : settings.reference) {
    const auto parts =
        parted(text, '=', [&](const auto& both) { return contains(spec.categories, both.first); });
    if (!parts) refuse("reference", kExpected, text, "there is no =");
    const auto& [column, value] = *parts;
    if (!contains(spec.categories, column)) {
      refuse("reference", kExpected, text, not_among("category", column, spec.categories));
    }
    if (!out.try_emplace(column, canonical(value)).second) {
      refuse("reference", kExpected, text, fmt::format("{} has one already", shown(column)));
    }
  }
  return out;
}

void check_reference(const std::string& column, const std::string& value,
                     const std::map<std::string, std::size_t>& rows_by_value) {
  if (rows_by_value.contains(value)) return;
  std::vector<std::string> values;
  for (const auto& [other, rows] : rows_by_value) values.push_back(other);
  constexpr std::size_t kMost = 8;
  const std::vector<std::string_view> candidates(values.begin(), values.end());
  throw InputError(fmt::format(
      "data.reference must name a value of column {} that a client has in training rows, but "
      "{} is none{}; there are {}",
      shown(column), shown(value), suggestion(value, candidates),
      values.empty() ? "none" : shown_list(values, kMost)));
}

void agree_on_terms(const PackedTable& table, const ClientTables& clients, ColumnScaling scaling,
                    TableFeatures& features) {
  TableSpec& spec = features.spec;
  TableScale& scale = features.scale;
  const bool wants_all = spec.missing_indicators == std::vector<std::string>{std::string(kAll)} &&
                         !contains(feature_columns(spec), kAll);
  if (wants_all) spec.missing_indicators = feature_columns(spec);
  if (spec.missing_indicators.empty() && spec.interactions.empty()) return;

  for (const auto& [first, second] : spec.interactions) {
    scale.products.emplace_back(terms_of_column(spec, scale, first).size() *
                                terms_of_column(spec, scale, second).size());
  }
  const RowEncoder encoder(spec, scale);
  ScaledRow row;
  // What clients report: how many values they miss,
  std::vector<double> missing(spec.missing_indicators.size());
  for (const std::uint32_t at : clients.train.rows) {
    table.read_row(at, row);
    for (std::size_t j = 0; j < missing.size(); ++j) missing[j] += encoder.is_missing(row, j);
  }
  // and sums of products.
  std::vector<std::vector<ColumnSums>> sums;  // by interaction
  for (std::size_t j = 0; j < scale.products.size(); ++j) {
    sums.emplace_back(scale.products[j].size());
    for (std::size_t c = 0; c < clients.ids.size(); ++c) {
      std::vector<std::vector<double>> values(sums[j].size());
      std::vector<double> made;
      for (const std::uint32_t at : clients.train.of(c)) {
        table.read_row(at, row);
        encoder.products(row, j, made);
        for (std::size_t i = 0; i < made.size(); ++i) {
          if (!std::isnan(made[i])) values[i].push_back(made[i]);
        }
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums[j][i] = pooled(std::vector{sums[j][i], sums_of(values[i])});
      }
    }
  }

  const bool is_scaled = scaling != ColumnScaling::none;
  const double rows = double(clients.train.rows.size());
  std::vector<std::string> with_missing;
  for (std::size_t j = 0; j < missing.size(); ++j) {
    if (wants_all && missing[j] == 0) continue;
    with_missing.push_back(spec.missing_indicators[j]);
    ColumnScale& column = scale.missing.emplace_back(share_scale(missing[j], rows));
    if (!is_scaled) column = {.varies = column.varies};
  }
  spec.missing_indicators = std::move(with_missing);
  for (std::size_t j = 0; j < sums.size(); ++j) {
    for (std::size_t i = 0; i < sums[j].size(); ++i) {
      const ColumnScale own = scale_of(sums[j][i]);
      scale.products[j][i] = {is_scaled ? own.mean : 0.0, 1, own.varies};
    }
  }
}

}  // namespace fedep
