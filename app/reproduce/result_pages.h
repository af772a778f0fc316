// The pages that results are written into: a Markdown file, or every one in a folder, between
// <!-- table2 --> and <!-- end -->.
//
//   for (const std::string& table : write_pages("result", results)) …   // has no place there
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/reproduce/results.h"

namespace fedep {

// The file itself, there or not; of a folder its *.md, sorted. Throws InputError for a folder that has
// none.
std::vector<std::filesystem::path> pages_of(const std::filesystem::path& place);

// Throws InputError if no page has a place for the table, or one has a place without its end. A file
// that is not there yet will have them all.
void check_pages(const std::filesystem::path& place, std::string_view table);

// Writes every table where its place is, and a file that is not there with a place for each. Gives
// the tables that have results and no place.
std::vector<std::string> write_pages(const std::filesystem::path& place,
                                     std::span<const Result> results);

}  // namespace fedep
