#include "app/reproduce/results.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "app/output.h"
#include "app/reproduce/paper_tables.h"
#include "fedep/message/error.h"
#include "fedep/message/parse_json.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"

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

bool fits(const Result& result) {
  const std::vector<std::int64_t>& switches = result.curve.switches;
  if (result.curve.every < 1 || !std::ranges::is_sorted(switches)) return false;
  return switches.empty() || (switches.front() >= 0 && switches.back() <= result.rounds);
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

// Of the last line.
enum class LineEnd { whole, without_break, cut_off };

struct Contents {
  std::vector<Result> results;
  LineEnd end = LineEnd::whole;
  std::size_t lines = 0;
};

// What is left of a line that was not written to its end; a note of somebody's is not.
bool is_beginning_of_result(std::string_view line) {
  constexpr std::string_view kBeginning = R"({"table":")";
  const std::size_t n = std::min(line.size(), kBeginning.size());
  return line.substr(0, n) == kBeginning.substr(0, n) && !find_json(line);
}

Contents read_contents(const std::filesystem::path& path) {
  Contents contents;
  const std::vector<std::byte> bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool has_break = end < text.size();
    ++contents.lines;
    if (!has_break) contents.end = LineEnd::without_break;
    try {
      if (!line.empty()) contents.results.push_back(result_of(parse_json(line)));
    } catch (const std::exception&) {  // no JSON, or no result
      if (has_break || !is_beginning_of_result(line)) {
        throw InputError(fmt::format(
            "{}:{}: line must be a result with table, row, seed, rounds and metrics, but is not",
            path.string(), contents.lines));
      }
      contents.end = LineEnd::cut_off;
    }
    if (!contents.results.empty() && !fits(contents.results.back())) {
      throw InputError(fmt::format(
          "{}:{}: curve must have every >= 1 and switches within its rounds, but has not",
          path.string(), contents.lines));
    }
    text.remove_prefix(has_break ? end + 1 : end);
  }
  return contents;
}

void tell_cut_off(const std::filesystem::path& path, const Contents& contents) {
  say("{}:{}: the line was not written to its end, and is left out\n", path.string(),
      contents.lines);
}

// Waits until nobody else adds to the file. File systems that know no locks are taken as they are.
FileDescriptor open_locked(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file) {
    throw RunError(fmt::format("{}: cannot open for appending: {}", path.string(),
                               std::generic_category().message(errno)));
  }
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

void append_locked(const std::filesystem::path& path, const FileDescriptor& locked,
                   const Contents& contents, const Result& result) {
  if (contents.end == LineEnd::cut_off) tell_cut_off(path, contents);
  if (contents.end == LineEnd::without_break && ::write(locked.get(), "\n", 1) != 1) {
    throw RunError(fmt::format("{}: cannot append a line break: {}", path.string(),
                               std::generic_category().message(errno)));
  }
  DurableLog log(path);  // which removes what was cut off
  log.append_line(to_line(result));
  log.sync();
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
  if (!std::filesystem::exists(path)) return {};
  Contents contents = read_contents(path);
  if (contents.end == LineEnd::cut_off) tell_cut_off(path, contents);
  return std::move(contents.results);
}

void append_result(const std::filesystem::path& path, const Result& result) {
  const FileDescriptor locked = open_locked(path);
  append_locked(path, locked, read_contents(path), result);
}

void append_result_if_missing(const std::filesystem::path& path, const Result& result) {
  const FileDescriptor locked = open_locked(path);
  const Contents contents = read_contents(path);
  const auto is_same = [&](const Result& other) {
    return other.table == result.table && other.row == result.row && other.seed == result.seed &&
           other.rounds == result.rounds;
  };
  if (std::ranges::none_of(contents.results, is_same)) {
    append_locked(path, locked, contents, result);
  }
}

std::vector<const Result*> results_of_row(std::span<const Result> results, std::string_view table,
                                          std::string_view row) {
  std::vector<const Result*> found;
  std::int64_t rounds = 0;
  for (const Result& result : results) {
    if (result.table != table || result.row != row) continue;
    rounds = std::max(rounds, result.rounds);
    found.push_back(&result);
  }
  std::erase_if(found, [&](const Result* result) { return result->rounds != rounds; });
  std::vector<const Result*> last;
  for (auto result = found.rbegin(); result != found.rend(); ++result) {
    const auto same = [&](const Result* other) { return other->seed == (*result)->seed; };
    if (std::none_of(last.begin(), last.end(), same)) last.push_back(*result);
  }
  return last;
}

}  // namespace fedep
