// `fedep reproduce`: runs the recipes of a table or figure of the paper, adds a line per finished
// run to results.jsonl, prints paper | ours | difference, and writes those tables into pages.
#pragma once

#include <memory>

#include "app/command.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// `ranks`: that share the runs, once there are some.
void add_reproduce_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks);

}  // namespace fedep
