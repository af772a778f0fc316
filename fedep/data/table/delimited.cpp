#include "fedep/data/table/delimited.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/data/table/utf8.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::size_t kMostColumns = 1'000'000;
constexpr std::size_t kMostRecordBytes = std::size_t(256) << 20;

void check_columns(const DelimitedTable& table) {
  std::unordered_set<std::string_view> seen;
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

// Where text comes from: more of it, or less than the span where it ends.
using TextReader = std::function<std::size_t(std::span<char>)>;

// Text in a window that moves over it, checked as it comes in.
class TextWindow {
 public:
  TextWindow(TextReader read, const std::string& source)
      : read_(std::move(read)), source_(source), buffer_(kFirst) {}

  // All there is from the place at hand on, as far as it was read.
  std::string_view rest() const { return {buffer_.data() + begin_, end_ - begin_}; }
  bool is_all() const { return is_all_; }
  void advance(std::size_t bytes) { begin_ += bytes; }

  // Makes the rest longer, unless it is all.
  void read_more() {
    if (end_ - begin_ > kMostRecordBytes) {
      throw InputError(fmt::format("{}: a record must have at most {} bytes, but has more", source_,
                                   kMostRecordBytes));
    }
    std::copy(buffer_.begin() + std::ptrdiff_t(begin_), buffer_.begin() + std::ptrdiff_t(end_),
              buffer_.begin());
    checked_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
    if (end_ > buffer_.size() / 2) buffer_.resize(2 * buffer_.size());
    const std::size_t asked = buffer_.size() - end_;
    const std::size_t came = read_(std::span(buffer_).subspan(end_, asked));
    is_all_ = came < asked;
    end_ += came;
    const std::string_view fresh(buffer_.data() + checked_, end_ - checked_);
    if (fresh.find('\0') != std::string_view::npos) {
      throw InputError(fmt::format("{}: expected text, but there are NUL bytes", source_));
    }
    checked_ += good_characters(fresh, is_all_, line_, source_);
  }

 private:
  static constexpr std::size_t kFirst = std::size_t(1) << 17;

  TextReader read_;
  const std::string& source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of the rest
  std::size_t checked_ = 0;          // up to here it is UTF-8
  std::size_t line_ = 1;             // of what was not checked
  bool is_all_ = false;
};

// Takes a record off the front of a text.
class RecordParser {
 public:
  enum class Outcome { good, bad, needs_more };

  // Fields beyond `most` are passed over; a record that has them is not good.
  Outcome parse(std::string_view text, bool is_all, const DelimitedFormat& format,
                std::size_t most) {
    at_ = text.data();
    end_ = at_ + text.size();
    is_all_ = is_all;
    separator_ = format.separator;
    quotes_ = format.quotes;
    fields_.clear();
    unescaped_.clear();
    lines_ = 0;
    bool good = true;
    for (;;) {
      std::string_view field;
      if (quotes_ && at_ != end_ && *at_ == '"') {
        good = read_quoted(field) && good;
        if (in_quotes_) return Outcome::needs_more;
        std::string_view more;
        good = read_plain(more) && more.empty() && good;
      } else {
        good = read_plain(field) && good;
      }
      if (fields_.size() < most) {
        fields_.push_back(field);
      } else {
        good = false;
      }
      if (at_ == end_ || *at_ != separator_) break;
      ++at_;
    }
    // The end of what was read may be in the middle of a field or of a line's end.
    if (!is_all_ && end_ - at_ < 2) return Outcome::needs_more;
    if (at_ != end_ && *at_ == '\r') ++at_;
    if (at_ != end_ && *at_ == '\n') {
      ++at_;
      ++lines_;
    }
    taken_ = std::size_t(at_ - text.data());
    return good ? Outcome::good : Outcome::bad;
  }

  std::span<const std::string_view> fields() const { return fields_; }
  std::size_t taken() const { return taken_; }
  std::size_t lines() const { return lines_; }
  bool in_quotes() const { return in_quotes_; }

 private:
  bool at_line_end() const {
    return at_ == end_ || *at_ == '\n' || (*at_ == '\r' && (at_ + 1 == end_ || at_[1] == '\n'));
  }

  // A quoted field to its closing quote; false if anything but a separator or line end follows.
  bool read_quoted(std::string_view& field) {
    const char* begin = ++at_;
    std::string* copy = nullptr;  // once there is a quote inside
    in_quotes_ = true;
    for (;;) {
      const char* quote = std::find(at_, end_, '"');
      // A quote at the end of what was read may be the first of two.
      if (quote == end_ || (quote + 1 == end_ && !is_all_)) return false;
      lines_ += std::size_t(std::count(at_, quote, '\n'));
      at_ = quote + 1;
      if (at_ == end_ || *at_ != '"') {
        if (copy != nullptr) copy->append(begin, quote);
        field = copy != nullptr ? std::string_view(*copy) : std::string_view(begin, quote);
        break;
      }
      if (copy == nullptr) copy = &unescaped_.emplace_back();
      copy->append(begin, at_);
      begin = ++at_;
    }
    in_quotes_ = false;
    return at_line_end() || *at_ == separator_;
  }

  // Up to the separator or line end; false if there is a quote or a bare CR on the way.
  bool read_plain(std::string_view& field) {
    const char* const begin = at_;
    bool good = true;
    for (; at_ != end_; ++at_) {
      const char c = *at_;
      if (c == separator_ || c == '\n') break;
      if (c == '\r') {
        if (at_line_end()) break;
        good = false;
      }
      if (quotes_ && c == '"') good = false;
    }
    field = {begin, std::size_t(at_ - begin)};
    return good;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool is_all_ = false;
  char separator_ = ',';
  bool quotes_ = true;
  bool in_quotes_ = false;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // fields that quotes were taken out of
  std::size_t lines_ = 0;
  std::size_t taken_ = 0;
};

class DelimitedReader final : public RecordSource {
 public:
  DelimitedReader(TextReader read, DelimitedFormat format, std::string source)
      : format_(std::move(format)),
        heading_{.source = std::move(source), .columns = format_.columns, .rows = {}},
        window_(std::move(read), heading_.source) {
    skip_byte_order_mark();
    if (heading_.columns.empty()) read_header();
    check_columns(heading_);
  }

  const DelimitedTable& heading() const override { return heading_; }
  std::span<const std::string_view> fields() const override { return parser_.fields(); }
  std::string place() const override { return fmt::format("line {}", line_); }
  std::size_t number() const override { return line_; }
  // Of the record at hand.
  RecordPlace at() const { return {good_records_ + heading_.bad_records, line_}; }

  bool next() override {
    while (take_record(heading_.columns.size())) {
      if (is_good_ && fields().size() == heading_.columns.size()) {
        ++good_records_;
        return true;
      }
      if (heading_.bad_records == 0) heading_.first_bad_line = line_;
      ++heading_.bad_records;
      if (heading_.bad_records <= DelimitedTable::kBadPlaces) {
        heading_.bad_places.push_back({good_records_ + heading_.bad_records, line_});
      }
    }
    if (heading_.bad_records > good_records_) {
      throw InputError(fmt::format(
          "{}:{}: expected records of {} fields, but {} of {} are bad{}", heading_.source,
          heading_.first_bad_line, heading_.columns.size(), heading_.bad_records,
          heading_.bad_records + good_records_, separator_hint(heading_.columns)));
    }
    return false;
  }

 private:
  void skip_byte_order_mark() {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    window_.read_more();
    if (window_.rest().starts_with(kMark)) window_.advance(kMark.size());
  }

  void read_header() {
    if (!take_record(kMostColumns)) {
      throw InputError(fmt::format("{}: expected a table, but the file is empty", heading_.source));
    }
    if (!is_good_) {
      throw InputError(fmt::format(
          "{}: expected column names in the first line, but {}", heading_.source,
          fields().size() == kMostColumns ? fmt::format("it has more than {}", kMostColumns)
                                          : "it is bad"));
    }
    heading_.columns.assign(fields().begin(), fields().end());
  }

  // The next record that is no empty line; false after the last.
  bool take_record(std::size_t most_fields) {
    for (;;) {
      if (window_.rest().empty() && window_.is_all()) return false;
      const RecordParser::Outcome outcome =
          parser_.parse(window_.rest(), window_.is_all(), format_, most_fields);
      if (outcome == RecordParser::Outcome::needs_more) {
        if (window_.is_all()) {
          throw InputError(
              fmt::format("{}: quotes must be closed, but the file ends within a quoted field",
                          heading_.source));
        }
        window_.read_more();
        continue;
      }
      window_.advance(parser_.taken());
      line_ = next_line_;
      next_line_ += parser_.lines();
      is_good_ = outcome == RecordParser::Outcome::good;
      const bool empty_line = is_good_ && fields().size() == 1 && fields().front().empty();
      if (!empty_line) return true;
    }
  }

  DelimitedFormat format_;
  DelimitedTable heading_;
  TextWindow window_;
  RecordParser parser_;
  bool is_good_ = true;
  std::size_t good_records_ = 0;
  std::size_t line_ = 1;
  std::size_t next_line_ = 1;
};

class TableRecords final : public RecordSource {
 public:
  explicit TableRecords(const DelimitedTable& table)
      : table_(table),
        heading_{.source = table.source,
                 .columns = table.columns,
                 .rows = {},
                 .bad_records = table.bad_records,
                 .lines = {},
                 .first_bad_line = table.first_bad_line} {}

  const DelimitedTable& heading() const override { return heading_; }
  std::span<const std::string_view> fields() const override { return fields_; }
  std::string place() const override {
    return fmt::format("{} {}", row_ <= table_.lines.size() ? "line" : "record", number());
  }
  std::size_t number() const override {
    return row_ <= table_.lines.size() ? table_.lines[row_ - 1] : row_;
  }
  bool next() override {
    if (row_ == table_.rows.size()) return false;
    fields_.assign(table_.rows[row_].begin(), table_.rows[row_].end());
    ++row_;
    return true;
  }

 private:
  const DelimitedTable& table_;
  DelimitedTable heading_;
  std::vector<std::string_view> fields_;
  std::size_t row_ = 0;  // from 1: the one at hand
};

DelimitedTable whole_table(DelimitedReader& records) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines, numbers;
  while (records.next()) {
    rows.emplace_back(records.fields().begin(), records.fields().end());
    lines.push_back(records.at().line);
    numbers.push_back(records.at().number);
  }
  DelimitedTable table = records.heading();
  table.rows = std::move(rows);
  table.lines = std::move(lines);
  table.numbers = std::move(numbers);
  return table;
}

TextReader file_text(const std::filesystem::path& file) {
  const auto packed = std::make_shared<GzipFile>("table", file);
  return [packed](std::span<char> into) { return packed->read(into); };
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

void DelimitedTable::check_has(const std::vector<std::string>& names) const {
  constexpr std::size_t kMostNamed = 8;
  const std::set<std::string_view> there(columns.begin(), columns.end());
  const std::set<std::string_view> needed(names.begin(), names.end());
  std::vector<std::string> lacking;
  for (const std::string& name : names) {
    if (!there.contains(name)) lacking.push_back(name);
  }
  if (lacking.empty()) return;
  std::vector<std::string_view> others;
  for (const std::string& column : columns) {
    if (!needed.contains(column)) others.push_back(column);
  }
  std::string hint = separator_hint(columns);
  if (hint.empty()) hint = suggestion(lacking.front(), others);
  if (hint.ends_with('?') && lacking.size() > 1) {
    hint = fmt::format("; for {}{}", shown(lacking.front()), hint.substr(1));
  }
  throw InputError(fmt::format("{} lacks the column{} {}{}", source, lacking.size() > 1 ? "s" : "",
                               shown_list(lacking, kMostNamed), hint));
}

ColumnIndex::ColumnIndex(const DelimitedTable& table) : table_(table) {
  places_.reserve(table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) places_.emplace(table.columns[i], i);
}

std::size_t ColumnIndex::operator()(std::string_view name) const {
  const auto found = places_.find(name);
  return found != places_.end() ? found->second : table_.column(name);
}

DelimitedFormat format_of(const std::filesystem::path& file) {
  const std::filesystem::path plain = file.extension() == ".gz" ? file.stem() : file;
  return plain.extension() == ".tsv" ? kTsv : kCsv;
}

std::unique_ptr<RecordSource> read_records(const std::filesystem::path& file,
                                           const DelimitedFormat& format) {
  return std::make_unique<DelimitedReader>(file_text(file), format, file.string());
}

std::unique_ptr<RecordSource> records_of(const DelimitedTable& table) {
  return std::make_unique<TableRecords>(table);
}

DelimitedTable read_delimited(const std::filesystem::path& file, const DelimitedFormat& format) {
  DelimitedReader records(file_text(file), format, file.string());
  return whole_table(records);
}

DelimitedTable parse_delimited(std::string_view text, const DelimitedFormat& format,
                               std::string source) {
  const TextReader read = [&](std::span<char> into) {
    const std::size_t count = std::min(into.size(), text.size());
    std::copy_n(text.begin(), count, into.begin());
    text.remove_prefix(count);
    return count;
  };
  DelimitedReader records(read, format, std::move(source));
  return whole_table(records);
}

}  // namespace fedep
