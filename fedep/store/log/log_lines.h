// The lines of a log.jsonl and what they say, both ways: under history.h, which reads logs, and
// run_log.h, which writes them.
#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "fedep/store/log/history.h"

namespace fedep {

// Lines without their newlines.
std::string line_of(const RunHeader& header);
std::string line_of(const RoundRecord& round);
std::string line_of(const RunEndRecord& end);

struct OtherLine {};  // of a kind that is not known, such as the first of a burn-in's (burn_in.h)
struct BadLine {};    // no JSON object with a kind

struct LogLine {
  std::string text;
  std::variant<RunHeader, RoundRecord, RunEndRecord, OtherLine, BadLine> said;
};

struct LogLines {
  std::vector<LogLine> lines;
  bool cut_off = false;  // within a last line, which is left out
};
LogLines read_log_lines(const std::filesystem::path& log);

// The same; throws InputError naming the first bad line.
std::vector<LogLine> read_good_lines(const std::filesystem::path& log);

}  // namespace fedep
