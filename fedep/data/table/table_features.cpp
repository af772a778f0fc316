#include "fedep/data/table/table_features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fedep/data/fingerprint.h"
#include "fedep/data/table/table_record.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/message/parse_json.h"

namespace fedep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "fedep.features";
constexpr const char* kTargets[] = {"label", "binary", "tags", "real",
                                    "count"};  // as in TargetKind

constexpr const char* kChecksum = "xxh3";

// Over what the file says, however it is laid out.
std::string checksum_of(const Json& json) {
  const std::string text = json.dump();
  return fmt::format("{:016x}", fingerprint(std::as_bytes(std::span(text))));
}

// Version 1 had none.
bool has_right_checksum(Json json) {
  if (json.at("version") == 1) return true;
  const std::string written = json.at(kChecksum);
  json.erase(kChecksum);
  return written == checksum_of(json);
}

Json json_of(const ColumnScale& scale) {
  Json json{{"mean", scale.mean}, {"deviation", scale.deviation}};
  if (!scale.varies) json["varies"] = false;
  if (std::isfinite(scale.low)) json["low"] = scale.low;
  if (std::isfinite(scale.high)) json["high"] = scale.high;
  return json;
}

ColumnScale scale_of(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {json.at("mean").get<double>(), json.at("deviation").get<double>(),
          json.value("varies", true), json.value("low", -kInfinity), json.value("high", kInfinity)};
}

Json json_of(const CategoryScale& category) {
  Json others = Json::object();
  for (const auto& [value, scale] : category.others) append_member(others, value, json_of(scale));
  return {{"baseline", category.baseline}, {"others", std::move(others)}};
}

TableFeatures features_of(const Json& json) {
  TableFeatures out;
  out.data = json.at("data");
  const auto target = std::find(std::begin(kTargets), std::end(kTargets), json.at("target"));
  if (target == std::end(kTargets)) throw InputError("target");
  out.spec.target = TargetKind(target - std::begin(kTargets));
  out.spec.client_column = json.at("client_column");
  out.spec.label_column = json.at("label_column");
  out.spec.positive = json.at("positive");
  out.spec.negative = json.at("negative");
  out.spec.group_column = json.at("group_column");
  out.spec.test_column = json.value("test_column", "");          // not in files of version 0.1
  out.spec.exposure_column = json.value("exposure_column", "");  // only where there is one
  out.spec.intercept = json.at("intercept");
  out.spec.missing = json.at("missing");
  out.spec.missing_in = json.at("missing_in");
  for (const auto& [name, scale] : json.at("numbers").items()) {
    out.spec.numbers.push_back(name);
    out.scale.numbers.push_back(scale_of(scale));
  }
  for (const auto& [name, category] : json.at("categories").items()) {
    out.spec.categories.push_back(name);
    CategoryScale& scale = out.scale.categories.emplace_back();
    scale.baseline = category.at("baseline");
    for (const auto& [value, column] : category.at("others").items()) {
      scale.others.emplace_back(value, scale_of(column));
    }
  }
  out.output_names = json.at("output_names");
  out.far = json.at("far");
  out.suspected = json.value("suspected", out.suspected);
  return out;
}

// "; lines 5, 9 and 12 others are bad too" of all lines but the first, or nothing.
std::string also_bad(std::span<const std::size_t> lines) {
  constexpr std::size_t kMost = 8;
  const auto others = lines.subspan(1);
  if (others.empty()) return {};
  const auto named = others.first(std::min(kMost, others.size()));
  const std::size_t more = others.size() - named.size();
  return fmt::format("; {} {}{} {} bad too", others.size() > 1 ? "lines" : "line",
                     fmt::join(named, ", "), more > 0 ? fmt::format(" and {} others", more) : "",
                     others.size() > 1 ? "are" : "is");
}

bool is_new(const std::string& value, const CategoryScale& category) {
  if (value.empty() || value == category.baseline) return false;
  return std::none_of(category.others.begin(), category.others.end(),
                      [&](const auto& other) { return other.first == value; });
}

}  // namespace

std::string to_json(const TableFeatures& features) {
  const TableSpec& spec = features.spec;
  Json numbers = Json::object(), categories = Json::object();
  for (std::size_t i = 0; i < spec.numbers.size(); ++i) {
    append_member(numbers, spec.numbers[i], json_of(features.scale.numbers.at(i)));
  }
  for (std::size_t i = 0; i < spec.categories.size(); ++i) {
    append_member(categories, spec.categories[i], json_of(features.scale.categories.at(i)));
  }
  Json json{{"format", kFormat},
            {"version", 2},
            {"data", features.data},
            {"target", kTargets[std::size_t(spec.target)]},
            {"output_names", features.output_names},
            {"client_column", spec.client_column},
            {"label_column", spec.label_column},
            {"positive", spec.positive},
            {"negative", spec.negative},
            {"group_column", spec.group_column},
            {"test_column", spec.test_column},
            {"intercept", spec.intercept},
            {"missing", spec.missing},
            {"missing_in", spec.missing_in},
            {"numbers", std::move(numbers)},
            {"categories", std::move(categories)},
            {"far", features.far}};
  if (!features.suspected.empty()) json["suspected"] = features.suspected;
  if (!spec.exposure_column.empty()) json["exposure_column"] = spec.exposure_column;
  json[kChecksum] = checksum_of(json);
  return json.dump(1) + "\n";
}

TableFeatures parse_table_features(std::string_view text, const std::string& source) {
  bool damaged = false;
  try {
    const Json json = parse_json(text);
    if (json.at("format") == kFormat && (json.at("version") == 1 || json.at("version") == 2)) {
      damaged = !has_right_checksum(json);
      if (!damaged) return features_of(json);
    }
  } catch (const std::exception&) {  // not JSON, or not ours
  }
  if (damaged) {
    throw InputError(fmt::format(
        "{}: must have the checksum of what it says, but has another: it was damaged or edited",
        source));
  }
  throw InputError(fmt::format(
      "{}: must hold the features of a table as a run writes them, but does not", source));
}

bool prepare_alike(const TableFeatures& a, const TableFeatures& b) {
  const auto by_column = [](const ColumnScale& x, const ColumnScale& y) {
    constexpr double kRounding = 1e-9;
    const auto near = [&](double one, double other) {
      return one == other ||
             std::fabs(one - other) <= kRounding * (std::fabs(x.mean) + x.deviation);
    };
    return x.varies == y.varies && near(x.mean, y.mean) && near(x.low, y.low) &&
           near(x.high, y.high) && std::fabs(x.deviation - y.deviation) <= kRounding * x.deviation;
  };
  const auto by_value = [&](const auto& x, const auto& y) {
    return x.first == y.first && by_column(x.second, y.second);
  };
  const auto by_category = [&](const CategoryScale& x, const CategoryScale& y) {
    return x.baseline == y.baseline && std::ranges::equal(x.others, y.others, by_value);
  };
  return a.spec == b.spec && a.output_names == b.output_names &&
         std::ranges::equal(a.scale.numbers, b.scale.numbers, by_column) &&
         std::ranges::equal(a.scale.categories, b.scale.categories, by_category);
}

DatasetInfo info_of(const TableFeatures& features) {
  const TableSpec& spec = features.spec;
  DatasetInfo info{.name = features.data,
                   .features = {},
                   .target = spec.target,
                   .outputs = spec.target == TargetKind::label ? features.output_names.size() : 1,
                   .feature_names = {},
                   .output_names = features.output_names};
  if (spec.intercept) info.feature_names.emplace_back("intercept");
  info.feature_names.insert(info.feature_names.end(), spec.numbers.begin(), spec.numbers.end());
  for (std::size_t j = 0; j < features.scale.categories.size(); ++j) {  // none without a client
    const CategoryScale& category = features.scale.categories[j];
    for (const auto& other : category.others) {
      info.feature_names.push_back(
          fmt::format("{}={} vs {}", spec.categories[j], other.first, category.baseline));
    }
  }
  info.features = {std::int64_t(info.feature_names.size())};
  info.has_exposure = !spec.exposure_column.empty();
  return info;
}

Batch encode_table(const DelimitedTable& table, const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  if (table.bad_records > 0) {
    throw InputError(fmt::format(
        "{}:{}: record must have {} fields, quoted as CSV is, but has not{}", table.source,
        table.first_bad_line, table.columns.size(),
        table.bad_records > 1 ? fmt::format("; {} records are so", table.bad_records) : ""));
  }
  if (table.rows.empty()) {
    throw InputError(fmt::format("{}: expected rows, but there is only a header", table.source));
  }
  Batch out;
  std::vector<std::size_t> bad_lines;
  std::string first_problem;
  const auto refuse_later = [&](std::size_t row, std::size_t column, std::string_view expected) {
    if (bad_lines.empty()) {
      first_problem = fmt::format("column {} must be {}, but is {}", shown(table.columns[column]),
                                  expected, shown(table.rows[row][column]));
    }
    bad_lines.push_back(table.lines.at(row));
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const FeatureParser::Parsed parsed = parser.parse(table.rows[i]);
    if (parsed.bad) {
      const bool exposure = table.columns[*parsed.bad] == features.spec.exposure_column;
      refuse_later(i, *parsed.bad, exposure ? "a positive number" : "a number");
      continue;
    }
    if (!features.spec.exposure_column.empty()) {
      out.log_exposure.push_back(float(std::log(parsed.row.exposure)));
    }
    if (features.spec.intercept) out.dense.push_back(1.f);
    const std::size_t first = out.dense.size();
    encode(parsed.row, features.scale, out.dense);
    for (std::size_t j = 0; j < features.spec.numbers.size(); ++j) {
      if (std::isfinite(out.dense[first + j])) continue;
      refuse_later(i, table.column(features.spec.numbers[j]), "a number that can be scaled");
      break;
    }
    ++out.size;
  }
  if (!bad_lines.empty()) {
    throw InputError(fmt::format("{}:{}: {}{}", table.source, bad_lines.front(), first_problem,
                                 also_bad(bad_lines)));
  }
  return out;
}

std::vector<std::size_t> lines_with_new_categories(const DelimitedTable& table,
                                                   const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow row = parser.parse(table.rows[i]).row;
    for (std::size_t j = 0; j < row.categories.size(); ++j) {
      if (!is_new(row.categories[j], features.scale.categories.at(j))) continue;
      lines.push_back(table.lines.at(i));
      break;
    }
  }
  return lines;
}

ConstantColumns constant_columns(const TableFeatures& features) {
  ConstantColumns out;
  const TableScale& scale = features.scale;
  for (std::size_t j = 0; j < scale.numbers.size(); ++j) {
    if (scale.numbers[j].varies) continue;
    out.names.push_back(features.spec.numbers.at(j));
    out.features.push_back(j + (features.spec.intercept ? 1 : 0));
  }
  for (std::size_t j = 0; j < scale.categories.size(); ++j) {
    if (scale.categories[j].others.empty()) out.names.push_back(features.spec.categories.at(j));
  }
  return out;
}

std::vector<std::size_t> rows_off_constants(const DelimitedTable& table,
                                            const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  const auto is_off = [](double value, const ColumnScale& column) {
    constexpr double kRounding = 1e-9;  // of a mean of equal numbers
    if (value < column.low || value > column.high) return true;
    return !column.varies && std::fabs(value - column.mean) > kRounding * std::fabs(column.mean);
  };
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow row = parser.parse(table.rows[i]).row;
    if (std::ranges::equal(row.numbers, features.scale.numbers, std::not_fn(is_off))) continue;
    rows.push_back(i);
  }
  return rows;
}

double distance(std::span<const float> features) {
  double sum = 0;
  for (const float x : features) sum += double(x) * double(x);
  return sum / double(features.size());
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = std::ceil(part * double(values.size()));
  return values[std::size_t(std::clamp(place, 1.0, double(values.size()))) - 1];
}

}  // namespace fedep
