#include "fedep/data/table/table_spec.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TargetKind target_of(LabelKind label) {
  if (label == LabelKind::yes_no) return TargetKind::binary;
  if (label == LabelKind::count) return TargetKind::count;
  return label == LabelKind::classes ? TargetKind::label : TargetKind::real;
}

void check_distinct(std::string_view key, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw InputError(fmt::format("{} must name a column once, but has {} twice", key, *twice));
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
                 .test_column = settings.test_column,
                 .exposure_column = settings.exposure_column};
  if (!spec.exposure_column.empty() && spec.target != TargetKind::count) {
    throw InputError(fmt::format(
        "data set {}: data.exposure_column must be empty unless data.label is \"count\", but is {}",
        settings.name, spec.exposure_column));
  }
  if (!settings.label_positive.empty()) spec.positive = settings.label_positive;
  if (!settings.missing.empty()) {
    spec.missing = settings.missing;
    spec.missing.emplace_back("");
  }
  check_distinct("data.features", spec.numbers);
  check_distinct("data.categories", spec.categories);
  if (settings.features.empty()) spec.numbers = table.columns;
  std::erase_if(spec.numbers, [&](const std::string& name) {
    const bool other = name == spec.client_column || name == spec.label_column ||
                       (!spec.test_column.empty() && name == spec.test_column) ||
                       (!spec.exposure_column.empty() && name == spec.exposure_column);
    return contains(spec.categories, name) || (settings.features.empty() && other);
  });
  return spec;
}

}  // namespace fedep
