// What `fedep sweep` varies: keys of a recipe, each with some values, and every combination of them.
//
//   const std::vector<GridKey> grid{parse_grid_key("client.epochs=1,5"), parse_grid_key("server.damping=1/K,0.5")};
//   for (const Cell& cell : cells_of(grid)) cell.overrides;   // {"client.epochs=1", "server.damping=1/K"}, …
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

struct GridKey {
  std::string key;  // as --set has it
  std::vector<std::string> values;

  bool operator==(const GridKey&) const = default;
};

// "key=a,b,c". Commas inside brackets, braces and quotes do not separate values. Throws InputError for
// what is not of this form, and for a value that is empty or given twice.
GridKey parse_grid_key(std::string_view text);

struct Cell {
  std::vector<std::string> overrides;  // one for each key, in the grid's order
  std::string name() const;            // "client.epochs=1, server.damping=1/K"
};

// All combinations, the last key's values next to each other; without keys one empty cell. Throws InputError
// if a key is there twice.
std::vector<Cell> cells_of(std::span<const GridKey> grid);

}  // namespace fedep
