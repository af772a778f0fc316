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
    result.metrics.emplace_back(name, value.is_null() ? kNotThere : value.get<double>());
  }
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
