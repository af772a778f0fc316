// Whether text is UTF-8, as it comes in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fedep {

// Bytes of whole characters at the front of a text: all of them or, unless it is the last of it, all
// but a character that is cut off. `line` counts lines on. Throws InputError, naming the line, for
// what is no UTF-8.
std::size_t good_characters(std::string_view text, bool is_last, std::size_t& line,
                            const std::string& source);

}  // namespace fedep
