#include "app/sweep/grid.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> out;
  std::string value;
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      out.emplace_back(trimmed(value));
      value.clear();
      continue;
    }
    value += c;
  }
  out.emplace_back(trimmed(value));
  return out;
}

}  // namespace

GridKey parse_grid_key(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view key = trimmed(text.substr(0, std::min(equals, text.size())));
  if (equals == text.npos || key.empty()) {
    throw InputError(fmt::format("--grid must be key=a,b,c, but is {}", shown(std::string(text))));
  }
  GridKey out{std::string(key), split_values(text.substr(equals + 1))};
  for (auto value = out.values.begin(); value != out.values.end(); ++value) {
    if (value->empty()) {
      throw InputError(fmt::format(
          "--grid {}: every value must be there, but one is empty (\"\" stands for an empty text)",
          key));
    }
    if (std::find(out.values.begin(), value, *value) != value) {
      throw InputError(
          fmt::format("--grid {}: a value must be there once, but {} is twice", key, *value));
    }
  }
  return out;
}

std::string Cell::name() const { return fmt::format("{}", fmt::join(overrides, ", ")); }

std::vector<Cell> cells_of(std::span<const GridKey> grid) {
  std::vector<Cell> cells(1);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const GridKey& key = grid[i];
    const auto same = [&](const GridKey& other) { return other.key == key.key; };
    if (std::any_of(grid.begin(), grid.begin() + std::ptrdiff_t(i), same)) {
      throw InputError(fmt::format("--grid: a key must be there once, but {} is twice", key.key));
    }
    std::vector<Cell> longer;
    for (const Cell& cell : cells) {
      for (const std::string& value : key.values) {
        longer.push_back(cell);
        longer.back().overrides.push_back(fmt::format("{}={}", key.key, value));
      }
    }
    cells = std::move(longer);
  }
  return cells;
}

}  // namespace fedep
