#include "fedep/data/table/table_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (!text.empty() && !is_blank(text.front()) && !is_blank(text.back())) return text;
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<double> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The number that a text is, unless it is a code that looks like one: 0071, 1E2 and numbers of so
// many digits that a double does not tell them apart are codes. At most 15 digits and a power of ten
// are doubles themselves, so their quotient is the nearest double, as from_chars gives it.
std::optional<double> plain_number(std::string_view text) {
  constexpr std::size_t kMost = 15;
  constexpr double kTens[kMost + 1] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.size() > kMost) return std::nullopt;
  if (text.size() > 1 && text[0] == '0' && text[1] != '.') return std::nullopt;
  std::int64_t digits = 0;
  std::size_t point = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned>(text[i] - '0');
    if (digit <= 9) {
      digits = 10 * digits + digit;
    } else if (text[i] == '.' && point == text.size() && text.size() > 1) {
      point = i;
    } else {
      return std::nullopt;
    }
  }
  const std::size_t decimals = point == text.size() ? 0 : text.size() - point - 1;
  const double value = double(digits) / kTens[decimals];
  return negative && value != 0 ? -value : value;
}

}  // namespace

std::string canonical(std::string_view text) {
  const std::string_view plain = trimmed(text);
  if (plain.size() <= 1) return std::string(plain);
  const std::optional<double> value = plain_number(plain);
  return value ? fmt::format("{}", *value) : std::string(plain);
}

namespace {

std::set<std::string> canonical_set(const std::vector<std::string>& values) {
  std::set<std::string> out;
  for (const std::string& value : values) out.insert(canonical(value));
  return out;
}

// Whether a word that is no number seems to say that there is none.
bool says_missing(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "none",     "nil", "missing", "unknown", "unk",       "n.a.",          "na",
      "not done", "nd",  "-",       "--",      "not known", "not available", "null"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::find(kWords, lower) != kWords.end();
}

// Larger ones are not all different as floats.
bool is_count(double x) { return x >= 0 && x == std::floor(x) && x <= 16777216; }

// A column that has another part must not be a feature too.
void check_roles(const DelimitedTable& table, const TableSpec& spec) {
  const std::pair<const std::string*, std::string_view> parts[] = {
      {&spec.client_column, "client"},    {&spec.label_column, "label"},
      {&spec.test_column, "test column"}, {&spec.exposure_column, "exposure"},
      {&spec.start_column, "start"},      {&spec.stop_column, "stop"}};
  for (const std::vector<std::string>* names : {&spec.numbers, &spec.categories}) {
    for (const std::string& name : *names) {
      for (const auto& [column, part] : parts) {
        if (column->empty() || *column != name) continue;
        throw InputError(fmt::format("{}: column {} must not be a feature, but is also the {}",
                                     table.source, shown(name), part));
      }
    }
  }
}

}  // namespace

FeatureParser::Missing::Missing(const std::vector<std::string>& values) { add(values); }

void FeatureParser::Missing::add(const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    std::string text = canonical(value);
    if (const auto spelt = number(text); spelt && fmt::format("{}", *spelt) == text) {
      numbers.push_back(*spelt);
    }
    texts.insert(std::move(text));
  }
}

FeatureParser::FeatureParser(const DelimitedTable& table, const TableSpec& spec) {
  const auto missing = std::make_shared<const Missing>(spec.missing);
  const ColumnIndex column(table);
  const auto feature = [&](const std::string& name) {
    const auto own = spec.missing_in.find(name);
    if (own == spec.missing_in.end()) return Feature{column(name), missing};
    Missing both = *missing;
    both.add(own->second);
    return Feature{column(name), std::make_shared<const Missing>(std::move(both))};
  };
  for (const std::string& name : spec.numbers) numbers_.push_back(feature(name));
  for (const std::string& name : spec.categories) categories_.push_back(feature(name));
  if (!spec.exposure_column.empty()) exposure_ = feature(spec.exposure_column);
  if (!spec.start_column.empty()) start_ = feature(spec.start_column);
  if (!spec.stop_column.empty()) stop_ = feature(spec.stop_column);
}

// None if the cell is missing or bad. Gives what number(canonical(cell)) gives, but makes no string.
std::optional<double> FeatureParser::parse_number(std::string_view cell, const Missing& missing,
                                                  bool& is_bad) {
  const std::string_view text = trimmed(cell);
  if (const std::optional<double> plain = plain_number(text)) {
    const auto& none = missing.numbers;
    const bool is_none = !none.empty() && std::find(none.begin(), none.end(), *plain) != none.end();
    return is_none ? std::nullopt : plain;
  }
  if (missing.texts.contains(text)) return std::nullopt;
  const std::optional<double> came = number(text);
  is_bad = !came;
  return came;
}

std::optional<std::size_t> FeatureParser::parse(std::span<const std::string_view> fields,
                                                TableRow& row) const {
  std::optional<std::size_t> first_bad;
  row.numbers.resize(numbers_.size());
  for (std::size_t j = 0; j < numbers_.size(); ++j) {
    const Feature& column = numbers_[j];
    bool is_bad = false;
    const std::optional<double> parsed =
        parse_number(fields[column.index], *column.missing, is_bad);
    row.numbers[j] = parsed.value_or(std::numeric_limits<double>::quiet_NaN());
    if (is_bad && !first_bad) first_bad = column.index;
  }
  row.categories.resize(categories_.size());
  for (std::size_t j = 0; j < categories_.size(); ++j) {
    std::string value = canonical(fields[categories_[j].index]);
    if (categories_[j].missing->texts.contains(value)) value.clear();
    row.categories[j] = std::move(value);
  }
  if (exposure_) {
    bool is_bad = false;
    row.exposure =
        parse_number(fields[exposure_->index], *exposure_->missing, is_bad).value_or(0.0);
    if (!(row.exposure > 0) && !first_bad) first_bad = exposure_->index;
  }
  if (stop_) {
    row.start = start_of(fields);
    row.stop = number_of(*stop_, fields);
    if (std::isnan(row.start) && !first_bad) first_bad = start_->index;
    if (!(row.stop > row.start) && !first_bad) first_bad = stop_->index;
  }
  return first_bad;
}

FeatureParser::Parsed FeatureParser::parse(const std::vector<std::string>& fields) const {
  Parsed out;
  const std::vector<std::string_view> views(fields.begin(), fields.end());
  out.bad = parse(views, out.row);
  return out;
}

std::optional<std::size_t> FeatureParser::refused(std::span<const std::string_view> fields) const {
  if (!exposure_) return std::nullopt;
  bool is_bad = false;
  const std::optional<double> came =
      parse_number(fields[exposure_->index], *exposure_->missing, is_bad);
  if (!came || *came > 0) return std::nullopt;
  return exposure_->index;
}

// NaN: it is missing, or none.
double FeatureParser::number_of(const Feature& column, std::span<const std::string_view> fields) {
  bool is_bad = false;
  return parse_number(fields[column.index], *column.missing, is_bad)
      .value_or(std::numeric_limits<double>::quiet_NaN());
}

double FeatureParser::start_of(std::span<const std::string_view> fields) const {
  return start_ ? number_of(*start_, fields) : 0.0;
}

std::optional<std::size_t> FeatureParser::without_time(
    std::span<const std::string_view> fields) const {
  if (!stop_ || !(number_of(*stop_, fields) <= start_of(fields))) return std::nullopt;
  return stop_->index;
}

RecordParser::RecordParser(const DelimitedTable& table, const TableSpec& spec)
    : columns_(table.columns),
      target_(spec.cell_target()),
      positive_(canonical_set(spec.positive)),
      negative_(canonical_set(spec.negative)),
      missing_(canonical_set(spec.missing)),
      client_(table.column(spec.client_column)),
      label_(table.column(spec.label_column)),
      features_(table, spec) {
  check_roles(table, spec);
  if (!spec.group_column.empty()) group_ = table.column(spec.group_column);
  if (!spec.test_column.empty()) test_ = table.column(spec.test_column);
}

std::string_view RecordParser::client_cell(std::span<const std::string_view> fields) const {
  return trimmed(fields[client_]);
}

std::string RecordParser::client(std::span<const std::string_view> fields) const {
  const std::string id(client_cell(fields));
  return missing_.contains(canonical(id)) ? std::string() : id;
}

bool RecordParser::parse(std::span<const std::string_view> fields, TableRecord& record) const {
  std::optional<Label> label = parse_label(canonical(fields[label_]));
  if (!label || features_.parse(fields, record.features)) return false;
  record.label = *std::move(label);
  if (group_) {
    record.group = canonical(fields[*group_]);
    if (missing_.contains(record.group)) record.group.clear();
  }
  record.test = false;
  if (!test_) return true;
  const std::string_view part = trimmed(fields[*test_]);
  record.test = part == "test";
  return record.test || part == "train";
}

std::optional<TableRecord> RecordParser::parse(const std::vector<std::string>& fields) const {
  const std::vector<std::string_view> views(fields.begin(), fields.end());
  TableRecord record;
  if (!parse(views, record)) return std::nullopt;
  return record;
}

std::string RecordParser::problem(std::span<const std::string_view> fields) const {
  const auto column = [&](std::size_t index, std::string_view why) {
    const std::string_view value = trimmed(fields[index]);
    return fmt::format("{} is {}, {}", shown(columns_[index]),
                       value.empty() ? "empty" : shown(std::string(value)), why);
  };
  if (client(fields).empty()) return column(client_, "which is no client");
  if (!parse_label(canonical(fields[label_]))) return column(label_, "which is no label");
  TableRow row;
  if (const auto bad = features_.parse(fields, row)) {
    const bool asks = says_missing(trimmed(fields[*bad]));
    return column(*bad, asks
                            ? "which is no number; data.missing can say that it means a missing one"
                            : "which is no number");
  }
  return column(test_.value_or(label_), "which is neither train nor test");
}

std::string RecordParser::refusal(std::span<const std::string_view> fields) const {
  const auto must = [&](std::size_t index, std::string_view what) {
    return fmt::format("{} must be {}, but is {}", shown(columns_[index]), what,
                       shown(std::string(trimmed(fields[index]))));
  };
  if (const auto index = features_.without_time(fields)) {
    return must(*index,
                fmt::format("a time after {}, where its spell begins", features_.start_of(fields)));
  }
  if (target_ != TargetKind::count) return {};
  const std::string label = canonical(fields[label_]);
  const std::optional<double> count = number(label);
  if (!missing_.contains(label) && count && !is_count(*count)) {
    return must(label_, "a count (0, 1, 2, … up to 16777216)");
  }
  if (const auto index = features_.refused(fields)) return must(*index, "a positive exposure");
  return {};
}

std::optional<Label> RecordParser::parse_label(const std::string& value) const {
  if (missing_.contains(value)) return std::nullopt;
  if (target_ == TargetKind::real || target_ == TargetKind::count) {
    const std::optional<double> parsed = number(value);
    if (!parsed) return std::nullopt;
    if (target_ == TargetKind::count && !is_count(*parsed)) return std::nullopt;
    return Label{value, *parsed};
  }
  if (target_ == TargetKind::label) return Label{value, 0};
  if (positive_.contains(value)) return Label{value, 1};
  const bool others_too = negative_.empty() || negative_.contains("*");
  if (others_too || negative_.contains(value)) return Label{value, 0};
  return std::nullopt;
}

}  // namespace fedep
