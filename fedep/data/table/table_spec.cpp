#include "fedep/data/table/table_spec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// What programs write for a missing value, none of which is a number.
const std::vector<std::string> kUsualMissing = {"",     "?",    "NA",  "N/A", "n/a", "#N/A",
                                                "NULL", "null", "NaN", "nan", "NAN", "."};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TargetKind target_of(LabelKind label) {
  if (label == LabelKind::yes_no) return TargetKind::binary;
  if (label == LabelKind::count || label == LabelKind::time_to_event) return TargetKind::count;
  return label == LabelKind::classes ? TargetKind::label : TargetKind::real;
}

void check_distinct(std::string_view key, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw InputError(fmt::format("{} must name a column once, but has {} twice", key, *twice));
}

// A column has one part: what is dropped, names a row or keeps rows together is not read for anything
// else, but a row's name may be its group's.
void check_parts(const TableSpec& spec, const DataSettings& settings, const DelimitedTable& table) {
  const std::pair<std::string_view, const std::string*> others[] = {
      {"data.client_column", &spec.client_column},
      {"data.label_column", &spec.label_column},
      {"data.test_column", &spec.test_column},
      {"data.exposure_column", &spec.exposure_column},
      {"data.start_column", &settings.start_column},
      {"data.stop_column", &settings.stop_column}};
  const auto check = [&](std::string_view key, const std::string& name) {
    table.column(name);
    const auto refuse = [&](std::string_view other) {
      throw InputError(fmt::format("{}: {} must name a column of its own, but {} is in {} too",
                                   table.source, key, shown(name), other));
    };
    for (const auto& [other, column] : others) {
      if (!column->empty() && *column == name) refuse(other);
    }
    if (contains(settings.features, name)) refuse("data.features");
    if (contains(settings.categories, name)) refuse("data.categories");
  };
  if (!spec.id_column.empty()) check("data.id_column", spec.id_column);
  if (!spec.group_column.empty()) check("data.group_column", spec.group_column);
  for (const std::string& name : settings.drop) {
    check("data.drop", name);
    if (name == spec.id_column || name == spec.group_column) {
      throw InputError(fmt::format(
          "{}: data.drop must name columns that nothing reads, but {} is in {} too", table.source,
          shown(name), name == spec.id_column ? "data.id_column" : "data.group_column"));
    }
  }
}

void check_times(const DataSettings& settings) {
  const bool is_timed = settings.label == LabelKind::time_to_event;
  if (is_timed && settings.stop_column.empty()) {
    throw InputError(fmt::format(
        "data set {}: data.stop_column must name the column of times until the event, or until "
        "nobody looked any more, where data.label is \"time_to_event\", but is empty",
        settings.name));
  }
  for (const auto& [key, column] : {std::pair("start_column", &settings.start_column),
                                    std::pair("stop_column", &settings.stop_column)}) {
    if (is_timed || column->empty()) continue;
    throw InputError(
        fmt::format("data set {}: data.{} must be empty unless data.label is \"time_to_event\", "
                    "but is {}",
                    settings.name, key, *column));
  }
}

}  // namespace

TableSpec table_spec(const DataSettings& settings, const DelimitedTable& table) {
  if (settings.client_column.empty() || settings.label_column.empty()) {
    throw InputError(
        fmt::format("data set {}: data.client_column and data.label_column must name columns of "
                    "{}, but {} is empty",
                    settings.name, table.source,
                    settings.client_column.empty() ? "client_column" : "label_column"));
  }
  TableSpec spec{.client_column = settings.client_column,
                 .label_column = settings.label_column,
                 .target = target_of(settings.label),
                 .negative = settings.label_negative,
                 .numbers = settings.features,
                 .categories = settings.categories,
                 .group_column = settings.group_column,
                 .id_column = settings.id_column,
                 .test_column = settings.test_column,
                 .exposure_column = settings.exposure_column};
  check_times(settings);
  if (settings.label == LabelKind::time_to_event) {
    spec.start_column = settings.start_column;
    spec.stop_column = settings.stop_column;
  }
  if (!spec.exposure_column.empty() && settings.label != LabelKind::count) {
    throw InputError(fmt::format(
        "data set {}: data.exposure_column must be empty unless data.label is \"count\", but is {}",
        settings.name, spec.exposure_column));
  }
  if (!settings.label_positive.empty()) spec.positive = settings.label_positive;
  spec.missing = settings.missing.empty() ? kUsualMissing : settings.missing;
  if (!settings.missing.empty()) spec.missing.emplace_back("");
  check_distinct("data.features", spec.numbers);
  check_distinct("data.categories", spec.categories);
  check_distinct("data.drop", settings.drop);
  check_parts(spec, settings, table);
  if (settings.features.empty()) spec.numbers = table.columns;
  std::erase_if(spec.numbers, [&](const std::string& name) {
    const bool other = name == spec.client_column || name == spec.label_column ||
                       (!spec.test_column.empty() && name == spec.test_column) ||
                       (!spec.exposure_column.empty() && name == spec.exposure_column) ||
                       (!spec.group_column.empty() && name == spec.group_column) ||
                       (!spec.id_column.empty() && name == spec.id_column) ||
                       contains(settings.drop, name) ||
                       (!spec.start_column.empty() && name == spec.start_column) ||
                       (!spec.stop_column.empty() && name == spec.stop_column);
    return contains(spec.categories, name) || (settings.features.empty() && other);
  });
  return spec;
}

}  // namespace fedep
