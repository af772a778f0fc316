// Text from anywhere as text that a terminal only shows. Control characters, among them those that
// begin its commands, and marks that turn the direction of writing, are written as escapes: \x1b,
// \u202e. So are bytes that are not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace fedep {

std::string printable(std::string_view text);        // one line: its line breaks are escapes too
std::string printable_lines(std::string_view text);  // line breaks and tabs stay

}  // namespace fedep
