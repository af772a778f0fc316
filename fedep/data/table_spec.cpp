#include "fedep/data/table_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Settings>
TableSpec spec_of(const Settings& settings, const DelimitedTable& table) {
  TableSpec spec;
  if constexpr (requires { settings.client_column; }) {
    spec.client_column = settings.client_column;
    spec.label_column = settings.label_column;
    if (!settings.label_positive.empty()) spec.positive = comma_list(settings.label_positive);
    spec.categories = comma_list(settings.categories);
    if (!settings.missing.empty()) {
      spec.missing = comma_list(settings.missing);
      spec.missing.emplace_back("");
    }
    spec.numbers = comma_list(settings.features);
    std::erase_if(spec.numbers,
                  [&](const std::string& name) { return contains(spec.categories, name); });
    if (settings.features.empty()) {
      for (const std::string& name : table.columns) {
        const bool is_number = name != spec.client_column && name != spec.label_column &&
                               !contains(spec.categories, name);
        if (is_number) spec.numbers.push_back(name);
      }
    }
  }
  if (spec.client_column.empty() || spec.label_column.empty()) {
    throw InputError(
        fmt::format("data set {}: data.client_column and data.label_column must name columns of "
                    "{}, but are empty",
                    settings.name, table.source));
  }
  return spec;
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
  return spec_of(settings, table);
}

}  // namespace fedep
