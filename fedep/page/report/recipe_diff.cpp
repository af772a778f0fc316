#include "fedep/page/report/recipe_diff.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "fedep/config/write_recipe.h"

namespace fedep {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// "phase.inference" inside the phase with index `phase` -> "phase.1.inference".
std::string section_of(std::string_view header, int phase) {
  constexpr std::string_view kPhase = "phase";
  if (!header.starts_with(kPhase)) return std::string(header);
  return fmt::format("{}.{}{}", kPhase, phase, header.substr(kPhase.size()));
}

}  // namespace

// Reads what to_toml writes: a line is empty, a [header], a [[phase]] or key = value.
Settings flat_settings(const Recipe& recipe) {
  Settings settings;
  const std::string text = to_toml(recipe);
  std::string section;
  int phase = -1;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("[[")) {
      section = section_of(line.substr(2, line.size() - 4), ++phase);
    } else if (line.starts_with("[")) {
      section = section_of(line.substr(1, line.size() - 2), phase);
    } else if (const std::size_t equals = line.find(" = "); equals != line.npos) {
      const std::string_view key = line.substr(0, equals);
      settings.emplace_back(section.empty() ? std::string(key) : fmt::format("{}.{}", section, key),
                            line.substr(equals + 3));
    }
  }
  return settings;
}

RecipeDiff recipe_diff(std::span<const Recipe> recipes) {
  std::vector<std::string> keys;  // of all recipes, new ones after their predecessor
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    auto place = keys.begin();
    for (auto& [key, value] : flat_settings(recipes[r])) {
      auto& row = values[key];
      if (row.empty()) {
        row.resize(recipes.size());
        place = keys.insert(place, key) + 1;
      } else {
        place = std::find(keys.begin(), keys.end(), key) + 1;
      }
      row[r] = std::move(value);
    }
  }
  RecipeDiff diff;
  for (const std::string& key : keys) {
    const auto& row = values[key];
    if (std::all_of(row.begin(), row.end(), [&](const auto& v) { return v == row[0]; })) continue;
    diff.keys.push_back(key);
    diff.values.push_back(row);
  }
  return diff;
}

}  // namespace fedep
