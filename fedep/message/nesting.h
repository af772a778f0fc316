// How deep a text nests, found before a parser sees it. Trees are walked, copied and torn down by
// functions that call themselves once a level; a text of 300,000 brackets would exhaust the stack.
//
//   const Json json = Json::parse(shallow_json(text));         // a deeper text is no JSON to us
//   if (const auto line = deep_toml_line(text)) refuse(*line);
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace fedep {

// No file of ours nests deeper than 8.
inline constexpr std::size_t kMostNesting = 64;

// The text; or, if it nests deeper, an empty one, which every JSON parser refuses.
std::string_view shallow_json(std::string_view text);

// The first line, from 1, at which a TOML text nests deeper: by tables' headers, dotted keys,
// arrays and braces together. Right up to the first place where the text is no TOML.
std::optional<std::size_t> deep_toml_line(std::string_view text);

}  // namespace fedep
