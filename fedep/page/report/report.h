// The page: one HTML document with its style, its script and its data, which loads nothing.
//
//   file << report_page(report_data(runs, extras));
#pragma once

#include <string>
#include <string_view>

#include "fedep/store/json.h"

namespace fedep {

std::string report_page(const Json& data);
// The same around data that script_json() has written already.
std::string report_page(std::string_view script_json, bool live);

// JSON as text that may stand in a script element: whatever strings it holds, none ends the element
// or begins a comment. Bytes that are not UTF-8 become U+FFFD.
std::string script_json(const Json& data);

}  // namespace fedep
