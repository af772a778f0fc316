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
// good ones, has more than a million columns or a record of more than 256 MiB.
//
// A file that is too large to be held as strings is read record by record, as a RecordSource:
//
//   const std::unique_ptr<RecordSource> records = read_records("stays.csv.gz", kCsv);
//   const std::size_t age = records->heading().column("age");
//   while (records->next()) use(records->fields()[age]);
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fedep {

struct DelimitedFormat {
  char separator = ',';
  bool quotes = true;
  std::vector<std::string> columns = {};  // names, where the file has no header
};

inline const DelimitedFormat kCsv{};
inline const DelimitedFormat kTsv{.separator = '\t', .quotes = false};

// Where a record is in its file.
struct RecordPlace {
  std::size_t number = 0;  // from 1, of all records, good and bad
  std::size_t line = 0;    // from 1: where it begins

  bool operator==(const RecordPlace&) const = default;
};

struct DelimitedTable {
  std::string source;  // for errors: the file's name
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as columns
  std::size_t bad_records = 0;
  std::vector<std::size_t> lines = {};  // of the file, from 1: where each row begins
  std::size_t first_bad_line = 0;       // 0: there is none
  std::vector<std::size_t> numbers =
      {};  // of the file, from 1, with bad records counted: each row's
  static constexpr std::size_t kBadPlaces = 1000;
  std::vector<RecordPlace> bad_places = {};  // of the first so many bad records

  // Throws InputError, with the nearest name, if there is no such column.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
  // Throws InputError that names all of these that there are not, with a near one among columns that
  // are none of them.
  void check_has(const std::vector<std::string>& names) const;
};

// A table's columns by name, for who asks for many of them. The table must outlive this.
class ColumnIndex {
 public:
  explicit ColumnIndex(const DelimitedTable& table);
  // As DelimitedTable::column.
  std::size_t operator()(std::string_view name) const;

 private:
  const DelimitedTable& table_;
  std::unordered_map<std::string_view, std::size_t> places_;
};

// Records one after the other.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Source and columns, without rows. Bad records are counted as they are met.
  virtual const DelimitedTable& heading() const = 0;
  // Goes to the next good record; false after the last. What makes a file refused is thrown when it
  // is met.
  virtual bool next() = 0;
  // As many as columns; they look into memory that holds until the next call of next().
  virtual std::span<const std::string_view> fields() const = 0;
  // Where the record begins: "line 7", or of a table without lines "record 3".
  virtual std::string place() const = 0;
  // The number in it.
  virtual std::size_t number() const = 0;
};

// Holds some megabytes of the file at a time.
std::unique_ptr<RecordSource> read_records(const std::filesystem::path& file,
                                           const DelimitedFormat& format);
// Of a table in memory, which must outlive them.
std::unique_ptr<RecordSource> records_of(const DelimitedTable& table);

// .tsv and .tsv.gz are kTsv, everything else is kCsv.
DelimitedFormat format_of(const std::filesystem::path& file);

DelimitedTable read_delimited(const std::filesystem::path& file, const DelimitedFormat& format);
DelimitedTable parse_delimited(std::string_view text, const DelimitedFormat& format,
                               std::string source);

}  // namespace fedep
