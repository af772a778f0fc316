#include "fedep/data/table_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TargetKind target_of(LabelKind label) {
  if (label == LabelKind::yes_no) return TargetKind::binary;
  return label == LabelKind::classes ? TargetKind::label : TargetKind::real;
}

void check_distinct(std::string_view key, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw InputError(fmt::format("{} must name a column once, but has {} twice", key, *twice));
}

}  // namespace

std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) out.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

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
                 .numbers = comma_list(settings.features),
                 .categories = comma_list(settings.categories),
                 .test_column = settings.test_column};
  if (!settings.label_positive.empty()) spec.positive = comma_list(settings.label_positive);
  spec.negative = comma_list(settings.label_negative);
  if (!settings.missing.empty()) {
    spec.missing = comma_list(settings.missing);
    spec.missing.emplace_back("");
  }
  check_distinct("data.features", spec.numbers);
  check_distinct("data.categories", spec.categories);
  if (settings.features.empty()) spec.numbers = table.columns;
  std::erase_if(spec.numbers, [&](const std::string& name) {
    const bool other = name == spec.client_column || name == spec.label_column ||
                       (!spec.test_column.empty() && name == spec.test_column);
    return contains(spec.categories, name) || (settings.features.empty() && other);
  });
  return spec;
}

}  // namespace fedep
