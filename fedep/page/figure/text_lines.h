// How much room a text takes in a picture, and lines that fit: by rough widths of letters, since whoever shows
// the picture chooses the font.
//
//   for (const std::string& line : text_lines(name, 13, 240, 2)) svg.text(…);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

// In pixels, at this size of letters; rather too wide than too narrow. The text is UTF-8.
double text_width(std::string_view text, double size);

// The text in lines of at most `width` pixels, broken at spaces, and within words that are longer. What does
// not fit into `most` lines ends in an ellipsis. At least one line.
std::vector<std::string> text_lines(std::string_view text, double size, double width,
                                    std::size_t most);

}  // namespace fedep
