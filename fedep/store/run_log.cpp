#include "fedep/store/run_log.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fedep/message/check.h"

namespace fedep {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void replace_text(const std::filesystem::path& path, const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace

RunLog RunLog::create(const std::filesystem::path& path, const Json& header,
                      std::span<const Json> rounds) {
  std::vector<Json> lines{header};
  lines.insert(lines.end(), rounds.begin(), rounds.end());
  replace_text(path, lines);
  return RunLog(path);
}

RunLog RunLog::reopen(const std::filesystem::path& path, std::int64_t round) {
  std::vector<Json> kept;
  std::int64_t rounds = 0;
  for (Json& line : read_log(path)) {
    const std::string kind = line.value("kind", "");
    const bool is_header = kept.empty() && kind == "run";
    const bool is_kept_round = kind == "round" && line.contains("round") &&
                               line["round"].is_number_integer() && line["round"] < round;
    rounds += is_kept_round;
    if (is_header || is_kept_round) kept.push_back(std::move(line));
  }
  if (kept.empty() || kept[0].value("kind", "") != "run") {
    throw InputError(
        fmt::format("{}: first line must be a run's header, but is not", path.string()));
  }
  if (rounds != round) {
    throw InputError(
        fmt::format("{}: log must hold the {} rounds before its checkpoint, but holds {}",
                    path.string(), round, rounds));
  }
  replace_text(path, kept);
  return RunLog(path);
}

void RunLog::write(const Json& line) { lines_.append_line(line.dump()); }

Json round_line(std::int64_t round, std::string_view phase, const RoundNumbers& numbers,
                double seconds, const Metrics& metrics) {
  Json line{{"kind", "round"},
            {"round", round},
            {"phase", std::string(phase)},
            {"clients", numbers.asked},
            {"dropped", numbers.dropped},
            {"outside_grid", numbers.outside_grid},
            {"diverged", numbers.diverged},
            {"skipped", numbers.skipped},
            {"clipped", numbers.clipped},
            {"guarded", numbers.guarded()},
            {"step_scale", numbers.step_scale},
            {"client_steps", numbers.steps},
            {"bytes_up", numbers.bytes_up},
            {"bytes_down", numbers.bytes_down},
            {"seconds", seconds}};
  line["train_loss"] =
      numbers.steps > 0 ? number(numbers.loss_sum / double(numbers.steps)) : Json(nullptr);
  for (const auto& [name, value] : metrics) line[name] = number(value);
  return line;
}

bool is_score(std::string_view field) {
  constexpr std::array<std::string_view, 15> kCounters{
      "kind",         "round",        "phase",    "clients",    "dropped",
      "outside_grid", "diverged",     "skipped",  "clipped",    "guarded",
      "step_scale",   "client_steps", "bytes_up", "bytes_down", "seconds"};
  return std::find(kCounters.begin(), kCounters.end(), field) == kCounters.end();
}

std::vector<Json> read_log(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Json> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!line.is_object() || !line.contains("kind") || !line["kind"].is_string()) {
      throw InputError(fmt::format("{}:{}: line must be a JSON object with a kind, but is not",
                                   path.string(), lines.size() + 1));
    }
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

}  // namespace fedep
