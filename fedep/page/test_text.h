// How often a part stands in a text, for tests of pages and figures.
//
//   EXPECT_EQ(count(svg, "<polyline"), 2u);
#pragma once

#include <cstddef>
#include <string_view>

namespace fedep {

inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace fedep
