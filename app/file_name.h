// Names that come from files never become paths: a score may be called anything in a log, a row
// anything in a recipe.
//
//   fmt::format("{}-{}.svg", prefix, file_name_part(score));    // stays beside the prefix
//   check_file_name("recipe.toml: row", recipe.row);            // or is refused
#pragma once

#include <string>
#include <string_view>

namespace fedep {

// The name as part of a file's name: letters, digits and _ - . + = stay, every other byte becomes
// %XX. Different names stay different. One of more than 100 bytes ends in its hash.
std::string file_name_part(std::string_view name);

// Throws InputError unless the name stays as it is above and does not begin with a dot.
void check_file_name(std::string_view what, std::string_view name);

}  // namespace fedep
