#include "fedep/data/table/delimited.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// Takes records off the front of a text.
class RecordReader {
 public:
  RecordReader(std::string_view text, const DelimitedFormat& format, const std::string& source)
      : text_(text), format_(format), source_(source) {}

  bool done() const { return at_ == text_.size(); }
  std::size_t line() const { return line_; }  // of what comes next, from 1

  // The next record's fields; none if it breaks a rule, and then the next call starts on the line
  // after it.
  std::optional<std::vector<std::string>> next() {
    std::vector<std::string> fields;
    bool good = true;
    const std::size_t begin = at_;
    for (;;) {
      std::string& field = fields.emplace_back();
      if (format_.quotes && at('"')) {
        good = read_quoted(field) && good;
      }
      good = read_plain(field) && good;
      if (!at(format_.separator)) break;
      ++at_;
    }
    if (at('\r')) ++at_;
    if (at('\n')) ++at_;
    const std::string_view taken = text_.substr(begin, at_ - begin);
    line_ += std::size_t(std::count(taken.begin(), taken.end(), '\n'));
    if (!good) return std::nullopt;
    return fields;
  }

 private:
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }

  // A quoted field to its closing quote; false if anything but a separator or line end follows.
  bool read_quoted(std::string& field) {
    ++at_;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        throw InputError(fmt::format(
            "{}: quotes must be closed, but the file ends within a quoted field", source_));
      }
      field.append(text_.substr(at_, quote - at_));
      at_ = quote + 1;
      if (!at('"')) break;
      field.push_back('"');
      ++at_;
    }
    return at_line_end() || at(format_.separator);
  }

  // Up to the separator or line end; false if there is a quote or a bare CR on the way.
  bool read_plain(std::string& field) {
    bool good = true;
    for (; !at_line_end() && !at(format_.separator); ++at_) {
      const char c = text_[at_];
      if (c == '\r' || (format_.quotes && c == '"')) good = false;
      field.push_back(c);
    }
    return good;
  }

  std::string_view text_;
  const DelimitedFormat& format_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

void check_columns(const DelimitedTable& table) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i];
    if (name.empty()) {
      throw InputError(
          fmt::format("{}: every column must have a name, but the header's field {} is empty",
                      table.source, i + 1));
    }
    if (!seen.insert(name).second) {
      throw InputError(fmt::format("{}: column names must differ, but {} is there twice",
                                   table.source, shown(name)));
    }
  }
}

// For a table that was not understood: its header has more semicolons (or tabs) than separators.
std::string separator_hint(const std::vector<std::string>& columns) {
  for (const auto& [mark, name] : {std::pair{';', ";"}, std::pair{'\t', "a tab"}}) {
    std::size_t count = 0;
    for (const std::string& column : columns) {
      count += std::size_t(std::count(column.begin(), column.end(), mark));
    }
    if (count < columns.size()) continue;
    return fmt::format(
        "; fields seem to be separated by {}, but must be by a comma, or in a file "
        "that is called .tsv by a tab",
        name);
  }
  return {};
}

// Bytes that a character of UTF-8 has from here on; 0 if there is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  std::uint32_t code = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : size;
}

void check_utf8(std::string_view text, const std::string& source) {
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) {
      throw InputError(fmt::format(
          "{}:{}: text must be UTF-8, but has byte {:#04x} here; `iconv -f latin1 -t utf8` turns "
          "Latin-1 into it",
          source, line, static_cast<unsigned char>(text[at])));
    }
    line += text[at] == '\n';
    at += size;
  }
}

}  // namespace

bool DelimitedTable::has(std::string_view name) const {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

std::size_t DelimitedTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) {
    const std::vector<std::string_view> names(columns.begin(), columns.end());
    throw InputError(fmt::format("{}: {}{}", source, unknown_name("column", name, names),
                                 separator_hint(columns)));
  }
  return std::size_t(found - columns.begin());
}

DelimitedFormat format_of(const std::filesystem::path& file) {
  const std::filesystem::path plain = file.extension() == ".gz" ? file.stem() : file;
  return plain.extension() == ".tsv" ? kTsv : kCsv;
}

DelimitedTable read_delimited(const std::filesystem::path& file, const DelimitedFormat& format) {
  const std::vector<std::uint8_t> bytes = read_gzip_file("table", file);
  return parse_delimited({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, format,
                         file.string());
}

DelimitedTable parse_delimited(std::string_view text, const DelimitedFormat& format,
                               std::string source) {
  DelimitedTable table{.source = std::move(source), .columns = format.columns, .rows = {}};
  if (text.find('\0') != std::string_view::npos) {
    throw InputError(fmt::format("{}: expected text, but there are NUL bytes", table.source));
  }
  check_utf8(text, table.source);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  RecordReader reader(text, format, table.source);
  while (!reader.done()) {
    const std::size_t line = reader.line();
    std::optional<std::vector<std::string>> fields = reader.next();
    const bool empty_line = fields && fields->size() == 1 && fields->front().empty();
    if (empty_line) continue;
    if (table.columns.empty()) {
      if (!fields) {
        throw InputError(fmt::format("{}: expected column names in the first line, but it is bad",
                                     table.source));
      }
      table.columns = *std::move(fields);
    } else if (fields && fields->size() == table.columns.size()) {
      table.rows.push_back(*std::move(fields));
      table.lines.push_back(line);
    } else {
      if (table.bad_records == 0) table.first_bad_line = line;
      ++table.bad_records;
    }
  }
  if (table.columns.empty()) {
    throw InputError(fmt::format("{}: expected a table, but the file is empty", table.source));
  }
  check_columns(table);
  if (table.bad_records > table.rows.size()) {
    throw InputError(fmt::format("{}:{}: expected records of {} fields, but {} of {} are bad{}",
                                 table.source, table.first_bad_line, table.columns.size(),
                                 table.bad_records, table.bad_records + table.rows.size(),
                                 separator_hint(table.columns)));
  }
  return table;
}

}  // namespace fedep
