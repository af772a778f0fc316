#include "fedep/data/table/table_record.h"

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

// Whether a text is a number and not a code that looks like one: 0071, 1E2 and numbers of so many
// digits that a double does not tell them apart are codes.
bool is_plain_number(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const bool digits = !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
  const bool padded = text.size() > 1 && text[0] == '0' && text[1] != '.';
  return digits && !padded && text.size() <= 15 && number(text);
}

// One spelling per value: 4.0, 4 and +4 are 4.
std::string canonical(std::string_view text) {
  const std::string_view plain = trimmed(text);
  if (!is_plain_number(plain)) return std::string(plain);
  const double value = *number(plain);
  return fmt::format("{}", value == 0 ? 0.0 : value);
}

std::set<std::string> canonical_set(const std::vector<std::string>& values) {
  std::set<std::string> out;
  for (const std::string& value : values) out.insert(canonical(value));
  return out;
}

// A column that is client or label must not be a feature too.
void check_roles(const DelimitedTable& table, const TableSpec& spec) {
  for (const std::vector<std::string>* names : {&spec.numbers, &spec.categories}) {
    for (const std::string& name : *names) {
      const bool is_test = !spec.test_column.empty() && name == spec.test_column;
      if (name != spec.client_column && name != spec.label_column && !is_test) continue;
      throw InputError(fmt::format("{}: column {} must not be a feature, but is also the {}",
                                   table.source, shown(name),
                                   is_test                      ? "test column"
                                   : name == spec.client_column ? "client"
                                                                : "label"));
    }
  }
}

}  // namespace

FeatureParser::FeatureParser(const DelimitedTable& table, const TableSpec& spec) {
  const std::set<std::string> missing = canonical_set(spec.missing);
  const auto feature = [&](const std::string& name) {
    Feature out{table.column(name), missing};
    const auto own = spec.missing_in.find(name);
    if (own != spec.missing_in.end()) out.missing.merge(canonical_set(own->second));
    return out;
  };
  for (const std::string& name : spec.numbers) numbers_.push_back(feature(name));
  for (const std::string& name : spec.categories) categories_.push_back(feature(name));
}

FeatureParser::Parsed FeatureParser::parse(const std::vector<std::string>& fields) const {
  Parsed out;
  for (const Feature& column : numbers_) {
    const std::string value = canonical(fields[column.index]);
    double parsed = std::numeric_limits<double>::quiet_NaN();
    if (!column.missing.contains(value)) {
      if (const std::optional<double> came = number(value)) {
        parsed = *came;
      } else if (!out.bad) {
        out.bad = column.index;
      }
    }
    out.row.numbers.push_back(parsed);
  }
  for (const Feature& column : categories_) {
    const std::string value = canonical(fields[column.index]);
    out.row.categories.push_back(column.missing.contains(value) ? "" : value);
  }
  return out;
}

RecordParser::RecordParser(const DelimitedTable& table, const TableSpec& spec)
    : columns_(table.columns),
      target_(spec.target),
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

std::string RecordParser::client(const std::vector<std::string>& fields) const {
  const std::string id(trimmed(fields[client_]));
  return missing_.contains(canonical(id)) ? std::string() : id;
}

std::optional<TableRecord> RecordParser::parse(const std::vector<std::string>& fields) const {
  std::optional<Label> label = parse_label(canonical(fields[label_]));
  if (!label) return std::nullopt;
  FeatureParser::Parsed features = features_.parse(fields);
  if (features.bad) return std::nullopt;
  TableRecord record{
      .features = std::move(features.row), .label = *std::move(label), .group = {}, .test = false};
  if (group_) record.group = fields[*group_];
  if (test_) {
    const std::string_view part = trimmed(fields[*test_]);
    record.test = part == "test";
    if (!record.test && part != "train") return std::nullopt;
  }
  return record;
}

std::string RecordParser::problem(const std::vector<std::string>& fields) const {
  const auto column = [&](std::size_t index, std::string_view why) {
    const std::string_view value = trimmed(fields[index]);
    return fmt::format("{} is {}, {}", shown(columns_[index]),
                       value.empty() ? "empty" : shown(std::string(value)), why);
  };
  if (client(fields).empty()) return column(client_, "which is no client");
  if (!parse_label(canonical(fields[label_]))) return column(label_, "which is no label");
  if (const auto bad = features_.parse(fields).bad) return column(*bad, "which is no number");
  return column(test_.value_or(label_), "which is neither train nor test");
}

std::optional<Label> RecordParser::parse_label(const std::string& value) const {
  if (missing_.contains(value)) return std::nullopt;
  if (target_ == TargetKind::real) {
    const std::optional<double> parsed = number(value);
    if (!parsed) return std::nullopt;
    return Label{value, *parsed};
  }
  if (target_ == TargetKind::label) return Label{value, 0};
  if (positive_.contains(value)) return Label{value, 1};
  const bool others_too = negative_.empty() || negative_.contains("*");
  if (others_too || negative_.contains(value)) return Label{value, 0};
  return std::nullopt;
}

}  // namespace fedep
