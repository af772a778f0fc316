// What recipes differ in: their settings as flat keys, the names that --set takes.
//
//   for (const auto& [key, value] : flat_settings(recipe)) …   // "phase.1.inference.alpha", "0.02"
//   const RecipeDiff diff = recipe_diff({a, b});               // only keys that differ
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

// Every setting with its value as TOML, in the order a recipe is written.
std::vector<std::pair<std::string, std::string>> flat_settings(const Recipe& recipe);

struct RecipeDiff {
  std::vector<std::string> keys;
  // values[k][r]: key k in recipe r; empty where the recipe has no such key.
  std::vector<std::vector<std::string>> values;
};
RecipeDiff recipe_diff(std::span<const Recipe> recipes);

}  // namespace fedep
