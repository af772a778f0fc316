// A strict reader of CSV and TSV tables, plain or gzipped.
//
//   const DelimitedTable table = read_delimited("stays.csv.gz", kCsv);
//   const std::size_t age = table.column("age");
//   for (const auto& row : table.rows) use(row[age]);
//
// CSV as in RFC 4180: a field may be quoted, a quote inside is doubled, a quoted field may hold
// separators and line ends. TSV has no quotes: a quote is a character like any other. Lines end in
// LF or CRLF; empty lines and a byte order mark are passed over. A record that breaks a rule (too
// few or too many fields, a stray quote, a bare CR) is left out and counted. A file is refused,
// with InputError, if it cannot be read, holds NUL bytes or what is not UTF-8, ends within quotes,
// has no header, leaves a column without a name or names one twice, or has more bad records than
// good ones.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

struct DelimitedFormat {
  char separator = ',';
  bool quotes = true;
  std::vector<std::string> columns = {};  // names, where the file has no header
};

inline const DelimitedFormat kCsv{};
inline const DelimitedFormat kTsv{.separator = '\t', .quotes = false};

struct DelimitedTable {
  std::string source;  // for errors: the file's name
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as columns
  std::size_t bad_records = 0;
  std::vector<std::size_t> lines = {};  // of the file, from 1: where each row begins
  std::size_t first_bad_line = 0;       // 0: there is none

  // Throws InputError, with the nearest name, if there is no such column.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
};

// .tsv and .tsv.gz are kTsv, everything else is kCsv.
DelimitedFormat format_of(const std::filesystem::path& file);

DelimitedTable read_delimited(const std::filesystem::path& file, const DelimitedFormat& format);
DelimitedTable parse_delimited(std::string_view text, const DelimitedFormat& format,
                               std::string source);

}  // namespace fedep
