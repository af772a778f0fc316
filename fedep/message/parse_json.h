// JSON that somebody else may have written, as a tree whose objects keep their order.
//
//   const nlohmann::ordered_json features = parse_json(text);         // throws InputError
//   const auto line = find_json(text);                                // nothing if it is none
//
// Text that nests deeper than kMostNesting, or has a name twice in an object, is no JSON to us. Takes
// time in proportion to the text: nlohmann's own parser looks for each name among all before it,
// half a minute for 100,000 of them.
#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fedep {

nlohmann::ordered_json parse_json(std::string_view text);
std::optional<nlohmann::ordered_json> find_json(std::string_view text);

// Adds a member whose name the object has not, without looking for it.
void append_member(nlohmann::ordered_json& object, const std::string& name,
                   nlohmann::ordered_json value);

}  // namespace fedep
