// A check for options that are whole numbers: CLI11's own lets -1 pass for 2^64 - 1 and prints its
// limits in three hundred digits.
//
//   command.add_option("--threads", threads)->check(whole_number(1));
#pragma once

#include <cstdint>
#include <limits>

#include "app/command.h"

namespace fedep {

OptionCheck whole_number(std::uint64_t least,
                         std::uint64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace fedep
