#include "fedep/data/table_record.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::string_view trimmed(std::string_view text) {
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

// One spelling per value: 4.0, 4 and +4 are 4.
std::string canonical(std::string_view text) {
  const std::string_view plain = trimmed(text);
  const std::optional<double> value = number(plain);
  return value ? fmt::format("{}", *value == 0 ? 0.0 : *value) : std::string(plain);
}

std::set<std::string> canonical_set(const std::vector<std::string>& values) {
  std::set<std::string> out;
  for (const std::string& value : values) out.insert(canonical(value));
  return out;
}

}  // namespace

RecordParser::RecordParser(const DelimitedTable& table, const TableSpec& spec)
    : spec_(spec),
      positive_(canonical_set(spec.positive)),
      negative_(canonical_set(spec.negative)),
      missing_(canonical_set(spec.missing)),
      client_(table.column(spec.client_column)),
      label_(table.column(spec.label_column)) {
  if (!spec.group_column.empty()) group_ = table.column(spec.group_column);
  for (const std::string& name : spec.numbers) numbers_.push_back(feature(table, name));
  for (const std::string& name : spec.categories) categories_.push_back(feature(table, name));
}

std::string RecordParser::client(const std::vector<std::string>& fields) const {
  const std::string id(trimmed(fields[client_]));
  return missing_.contains(canonical(id)) ? std::string() : id;
}

std::optional<Record> RecordParser::parse(const std::vector<std::string>& fields) const {
  Record record;
  std::optional<Label> label = parse_label(canonical(fields[label_]));
  if (!label) return std::nullopt;
  record.label = *std::move(label);
  for (const Feature& column : numbers_) {
    const std::string value = canonical(fields[column.index]);
    if (is_missing(column, value)) {
      record.features.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    const std::optional<double> parsed = number(value);
    if (!parsed) return std::nullopt;
    record.features.numbers.push_back(*parsed);
  }
  for (const Feature& column : categories_) {
    const std::string value = canonical(fields[column.index]);
    record.features.categories.push_back(is_missing(column, value) ? "" : value);
  }
  if (group_) record.group = fields[*group_];
  return record;
}

RecordParser::Feature RecordParser::feature(const DelimitedTable& table,
                                            const std::string& name) const {
  Feature out{table.column(name), {}};
  if (out.index == client_ || out.index == label_) {
    throw InputError(fmt::format("{}: column {} must not be a feature, but is also the {}",
                                 table.source, shown(name),
                                 out.index == client_ ? "client" : "label"));
  }
  const auto own = spec_.missing_in.find(name);
  if (own != spec_.missing_in.end()) out.missing = canonical_set(own->second);
  return out;
}

bool RecordParser::is_missing(const Feature& column, const std::string& value) const {
  return missing_.contains(value) || column.missing.contains(value);
}

std::optional<Label> RecordParser::parse_label(const std::string& value) const {
  if (missing_.contains(value)) return std::nullopt;
  if (spec_.target == TargetKind::real) {
    const std::optional<double> parsed = number(value);
    if (!parsed) return std::nullopt;
    return Label{value, *parsed};
  }
  if (spec_.target == TargetKind::label) return Label{value, 0};
  if (positive_.contains(value)) return Label{value, 1};
  if (negative_.empty() || negative_.contains(value)) return Label{value, 0};
  return std::nullopt;
}

}  // namespace fedep
