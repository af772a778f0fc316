// Checks for options that are numbers: CLI11's own lets -1 pass for 2^64 - 1 and prints its limits in three
// hundred digits.
//
//   command.add_option("--threads", threads)->check(whole_number(1));
#pragma once

#include <cstdint>
#include <limits>

#include "app/command.h"

namespace fedep {

OptionCheck whole_number(std::uint64_t least,
                         std::uint64_t most = std::numeric_limits<std::int64_t>::max());
// A level of intervals: from 0.01 to 0.999.
OptionCheck interval_level();

}  // namespace fedep
