#include "fedep/data/table/row_marks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// Without blanks around it, in lower case.
std::string plain(std::string_view cell) {
  const std::size_t begin = cell.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  std::string out(cell.substr(begin, cell.find_last_not_of(" \t") - begin + 1));
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return out;
}

}  // namespace

void RowMarks::add(const RecordSource& records) {
  if (unit_.empty()) {
    const std::string place = records.place();
    unit_ = place.substr(0, place.find(' '));
  }
  const auto number = std::uint32_t(records.number());
  numbers_.add({&number, 1});
  std::uint64_t hash = 0;
  for (const std::string_view cell : records.fields()) {
    hash = XXH3_64bits_withSeed(cell.data(), cell.size(), hash);
  }
  hashes_.add({&hash, 1});
}

std::string RowMarks::place(std::uint32_t row) const {
  return fmt::format("{} {}", unit_, numbers_.at(row, 0));
}

HeaderFinder::HeaderFinder(const DelimitedTable& heading) : heading_(heading) {
  for (std::size_t j = 0; j < heading.columns.size(); ++j) {
    places_.emplace(plain(heading.columns[j]), j);
  }
}

bool HeaderFinder::is_header(const RecordSource& records, bool usable) const {
  const std::span<const std::string_view> cells = records.fields();
  if (usable && cells.front() != heading_.columns.front() &&
      !places_.contains(std::string(cells.front()))) {
    return false;
  }
  std::set<std::size_t> named;
  std::size_t in_place = 0, moved = cells.size();
  for (std::size_t j = 0; j < cells.size(); ++j) {
    const auto found = places_.find(plain(cells[j]));
    if (found == places_.end()) continue;
    named.insert(found->second);
    in_place += found->second == j;
    if (found->second != j && moved == cells.size()) moved = j;
  }
  if (in_place == cells.size()) return true;
  if (named.size() < 2 || 2 * named.size() <= cells.size()) return false;
  throw InputError(fmt::format(
      "{}: repeated-header: {} names the columns again, {}: rows behind it would be read under "
      "wrong names; cut the file there, and put its parts into one order of columns",
      heading_.source, records.place(),
      moved < cells.size()
          ? fmt::format("in another order ({} where the first header has {})",
                        shown(std::string(cells[moved])), shown(heading_.columns[moved]))
          : fmt::format("but {} of {} are others", cells.size() - named.size(), cells.size())));
}

}  // namespace fedep
