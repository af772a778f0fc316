// What is kept of a table's rows for those who look for mistakes in it: where each stands in its file,
// and a hash by which equal rows are found. And rows that are no rows: headers of files that were put
// behind one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fedep/data/table/column_blocks.h"
#include "fedep/data/table/delimited.h"

namespace fedep {

class RowMarks {
 public:
  void add(const RecordSource& records);

  // "line 7", or of a table without lines "record 3".
  std::string place(std::uint32_t row) const;
  // Of all its cells.
  std::uint64_t hash(std::uint32_t row) const { return hashes_.at(row, 0); }

  std::size_t repeated_headers = 0;
  std::string first_header = {};  // its place

 private:
  std::string unit_ = {};
  ColumnBlocks<std::uint32_t> numbers_{1};
  ColumnBlocks<std::uint64_t> hashes_{1};
};

// Finds a header among a table's rows.
class HeaderFinder {
 public:
  explicit HeaderFinder(const DelimitedTable& heading);

  // Whether this row names the columns again, in their order. Of a row that can be used only the first
  // cell is looked at, unless that is a column's name. Throws InputError for names in another order and
  // for those of another table: what follows would be read under wrong names.
  bool is_header(const RecordSource& records, bool usable) const;

 private:
  const DelimitedTable& heading_;
  std::unordered_map<std::string, std::size_t> places_;  // in lower case
};

}  // namespace fedep
