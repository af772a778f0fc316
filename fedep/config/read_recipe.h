// Reads a recipe from TOML. Whatever is wrong is one line with its place:
//
//   recipe.toml:12: client.epoch is not a setting; did you mean client.epochs?
//   recipe.toml:14: client.remainder must be drop or keep, but is "dorp"; did you mean drop?
//   --set server.optimizer.lr=-1: server.optimizer.lr must be positive, but is -1
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

// The file, with what it extends (extend.h). `overrides` are `section.key=value`, as after --set (see
// override.h); a later one wins. The result is resolved (resolve.h). Throws InputError.
Recipe read_recipe(const std::filesystem::path& file,
                   const std::vector<std::string>& overrides = {});

// The same from text, which extends nothing; `source` is what errors call it.
Recipe parse_recipe(std::string_view text, std::string_view source = "recipe",
                    const std::vector<std::string>& overrides = {});

}  // namespace fedep
