#include "app/results.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "app/paper_tables.h"
#include "fedep/message/error.h"
#include "fedep/round/durable_file.h"

namespace fedep {
namespace {

constexpr std::string_view kRoundsTo = "rounds_to_";

Json metric_json(std::string_view name, double value) {
  if (!std::isfinite(value)) return nullptr;
  return name.starts_with(kRoundsTo) ? Json(std::int64_t(value)) : Json(value);
}

Json values_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(metric_json("", value));
  return list;
}

Json curve_json(const ResultCurve& curve) {
  Json json{{"every", curve.every}, {"switches", curve.switches}};
  for (const auto& [score, means] : curve.scores) json[score] = values_json(means);
  return json;
}

double number_or_nothing(const Json& value) {
  return value.is_null() ? kNotThere : value.get<double>();
}

ResultCurve curve_of(const Json& json) {
  ResultCurve curve{.every = json.at("every"), .switches = json.at("switches")};
  for (const auto& [name, values] : json.items()) {
    if (name == "every" || name == "switches") continue;
    auto& means = curve.scores.emplace_back(name, std::vector<double>{}).second;
    for (const Json& value : values) means.push_back(number_or_nothing(value));
  }
  return curve;
}

bool fits(const ResultCurve& curve, std::int64_t rounds) {
  return curve.every >= 1 && std::ranges::is_sorted(curve.switches) &&
         (curve.switches.empty() ||
          (curve.switches.front() >= 0 && curve.switches.back() <= rounds));
}

Result result_of(const Json& json) {
  Result result{.table = json.at("table"),
                .row = json.at("row"),
                .seed = json.at("seed"),
                .rounds = json.at("rounds"),
                .metrics = {},
                .seconds = json.at("seconds"),
                .refused_rounds = json.value("refused_rounds", std::int64_t{0}),
                .device = json.at("device"),
                .date = json.at("date"),
                .version = json.at("version")};
  for (const auto& [name, value] : json.at("metrics").items()) {
    result.metrics.emplace_back(name, number_or_nothing(value));
  }
  if (json.contains("curve")) result.curve = curve_of(json.at("curve"));
  return result;
}

}  // namespace

std::string to_line(const Result& result) {
  Json metrics = Json::object();
  for (const auto& [name, value] : result.metrics) metrics[name] = metric_json(name, value);
  Json line{{"table", result.table},   {"row", result.row},   {"seed", result.seed},
            {"rounds", result.rounds}, {"metrics", metrics},  {"seconds", result.seconds},
            {"device", result.device}, {"date", result.date}, {"version", result.version}};
  if (result.refused_rounds > 0) line["refused_rounds"] = result.refused_rounds;
  if (!result.curve.scores.empty()) line["curve"] = curve_json(result.curve);
  return line.dump();
}

std::vector<Result> read_results(const std::filesystem::path& path) {
  std::vector<Result> results;
  if (!std::filesystem::exists(path)) return results;
  const std::vector<std::byte> bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      if (end > 0) results.push_back(result_of(Json::parse(text.substr(0, end))));
      if (end > 0 && !fits(results.back().curve, results.back().rounds)) {
        throw InputError(fmt::format(
            "{}:{}: curve must have every >= 1 and switches within its rounds, but has not",
            path.string(), number));
      }
    } catch (const Json::exception&) {
      throw InputError(fmt::format(
          "{}:{}: line must be a result with table, row, seed, rounds and metrics, but is not",
          path.string(), number));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return results;
}

void append_result(const std::filesystem::path& path, const Result& result) {
  DurableLog log(path);
  log.append_line(to_line(result));
  log.sync();
}

}  // namespace fedep
