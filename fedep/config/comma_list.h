// The short form of a setting that is a list: "a, b" for ["a", "b"].
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fedep {

// "a, b" -> {"a", "b"}; nothing -> {}. Spaces around an item and empty items do not count.
std::vector<std::string> comma_list(std::string_view text);

}  // namespace fedep
