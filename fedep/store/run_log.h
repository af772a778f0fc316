// The run log, log.jsonl: one JSON object a line. First {"kind":"run",…}, then a line per round,
// last {"kind":"end",…}. A value that does not exist is null, never NaN.
//
//   RunLog log = RunLog::create(path, header);
//   log.write(round_line(41, "fed_ep", numbers, seconds, metrics));
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fedep/metric/metrics.h"
#include "fedep/round/play_round.h"
#include "fedep/store/durable_file.h"

namespace fedep {

using Json = nlohmann::ordered_json;

class RunLog {
 public:
  // `rounds`: lines of rounds that were played elsewhere.
  static RunLog create(const std::filesystem::path& path, const Json& header,
                       std::span<const Json> rounds = {});
  // Keeps the first line and those of rounds before `round`; the rest will be played again.
  // Throws InputError if the log has no header or lacks one of those rounds.
  static RunLog reopen(const std::filesystem::path& path, std::int64_t round);

  void write(const Json& line);

 private:
  explicit RunLog(const std::filesystem::path& path) : lines_(path) {}

  DurableLog lines_;
};

Json round_line(std::int64_t round, std::string_view phase, const RoundNumbers& numbers,
                double seconds, const Metrics& metrics);
// Whether a field of a round's line is a score (or loss), not a counter.
bool is_score(std::string_view field);

// Every line of a log; throws InputError naming the line that is not JSON. A last line without its
// newline is what a crash leaves behind and is ignored.
std::vector<Json> read_log(const std::filesystem::path& path);

}  // namespace fedep
