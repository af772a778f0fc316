// `fedep reproduce`: runs the recipes of a table or figure of the paper, adds a line per finished
// run to results.jsonl, prints paper | ours | difference, and writes those tables into pages.
#pragma once

#include "app/command.h"

namespace fedep {

void add_reproduce_command(Command& app, int& exit_code);

}  // namespace fedep
