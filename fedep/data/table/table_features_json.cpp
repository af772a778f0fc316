// features.json, written and read.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/data/fingerprint.h"
#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/term.h"
#include "fedep/message/check.h"
#include "fedep/message/error.h"
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

Json json_of(const std::vector<ColumnScale>& scales) {
  Json out = Json::array();
  for (const ColumnScale& scale : scales) out.push_back(json_of(scale));
  return out;
}

std::vector<ColumnScale> scales_of(const Json& json) {
  std::vector<ColumnScale> out;
  for (const Json& scale : json) out.push_back(scale_of(scale));
  return out;
}

// Who does not know of them must not read the file.
bool has_terms(const TableSpec& spec) {
  return !spec.missing_indicators.empty() || !spec.interactions.empty() || spec.is_time_to_event();
}

// Terms beside columns, which files before version 3 have not.
void write_terms(const TableFeatures& features, Json& json) {
  const TableSpec& spec = features.spec;
  const TableScale& scale = features.scale;
  if (!spec.missing_indicators.empty()) {
    json["missing_indicators"] = {{"columns", spec.missing_indicators},
                                  {"scales", json_of(scale.missing)}};
  }
  for (std::size_t i = 0; i < spec.interactions.size(); ++i) {
    const auto& [first, second] = spec.interactions[i];
    json["interactions"].push_back(
        {{"columns", {first, second}}, {"products", json_of(scale.products.at(i))}});
  }
  if (spec.is_time_to_event()) {
    json["time"] = {{"start_column", spec.start_column},
                    {"stop_column", spec.stop_column},
                    {"cuts", scale.cuts},
                    {"intervals", json_of(scale.intervals)}};
  }
}

void read_terms(const Json& json, TableFeatures& features) {
  TableSpec& spec = features.spec;
  TableScale& scale = features.scale;
  if (json.contains("missing_indicators")) {
    const Json& missing = json.at("missing_indicators");
    spec.missing_indicators = missing.at("columns");
    scale.missing = scales_of(missing.at("scales"));
    check_same_size("features", "missing indicators", spec.missing_indicators.size(),
                    scale.missing.size());
  }
  if (json.contains("interactions")) {
    for (const Json& one : json.at("interactions")) {
      spec.interactions.push_back({one.at("columns").at(0), one.at("columns").at(1)});
      const auto& [first, second] = spec.interactions.back();
      scale.products.push_back(scales_of(one.at("products")));
      check_same_size(
          "features", "products",
          terms_of_column(spec, scale, first).size() * terms_of_column(spec, scale, second).size(),
          scale.products.back().size());
    }
  }
  if (json.contains("time")) {
    const Json& time = json.at("time");
    spec.start_column = time.at("start_column");
    spec.stop_column = time.at("stop_column");
    scale.cuts = time.at("cuts").get<std::vector<double>>();
    scale.intervals = scales_of(time.at("intervals"));
    check_same_size("features", "intervals", scale.cuts.size(), scale.intervals.size());
    if (!std::ranges::is_sorted(scale.cuts)) throw InputError("cuts");
  }
  (void)RowEncoder(spec, scale);  // throws for a term of a column that is no feature
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
  out.spec.id_column = json.value("id_column", "");              // only where there is one
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
  read_terms(json, out);
  out.output_names = json.at("output_names");
  out.far = json.at("far");
  out.suspected = json.value("suspected", out.suspected);
  return out;
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
            {"version", has_terms(spec) ? 3 : 2},
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
  if (!spec.id_column.empty()) json["id_column"] = spec.id_column;
  if (!spec.exposure_column.empty()) json["exposure_column"] = spec.exposure_column;
  write_terms(features, json);
  json[kChecksum] = checksum_of(json);
  return json.dump(1) + "\n";
}

TableFeatures parse_table_features(std::string_view text, const std::string& source) {
  bool damaged = false;
  try {
    const Json json = parse_json(text);
    const int version = json.at("version");
    if (json.at("format") == kFormat && version >= 1 && version <= 3) {
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

}  // namespace fedep
