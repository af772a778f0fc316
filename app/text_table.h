// A table for people to read: the first column to the left, all others to the right. Where lines would be
// longer than `most` characters, the columns that are left follow in further blocks, each with the first one.
// Half of `most` is for the others however long the first one is.
//
//   print_text("{}", text_table({{"run", "accuracy"}, {"a", "0.81"}}));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

using TextLines = std::vector<std::vector<std::string>>;  // as many fields in each

std::string text_table(const TextLines& lines, std::size_t most = 120);

// Columns that a text takes on a terminal: characters, not bytes, and signs of East Asia take two.
std::size_t screen_width(std::string_view text);

}  // namespace fedep
