// What tells a log up to some round from every other log: a hash of who plays (seed, clients, data)
// and of what was played, round by round. Times and scores are no part of it: another start of the
// same run may have others, and a checkpoint's bytes depend on recipe, seed and round alone.
//
//   LogMark mark = mark_of(header);
//   mark = mark_after(mark, line_of(round));   // a line of log.jsonl, as it stands there
#pragma once

#include <cstdint>
#include <string_view>

#include "fedep/store/log/history.h"

namespace fedep {

using LogMark = std::uint64_t;

LogMark mark_of(const RunHeader& header);
LogMark mark_after(LogMark before, std::string_view round_line);

}  // namespace fedep
