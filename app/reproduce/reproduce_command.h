// `fedep reproduce`: runs the recipes of a table or figure of the paper, adds a line per finished
// run to results.jsonl, prints paper | ours | difference, and writes those tables into pages.
#pragma once

#include <CLI/CLI.hpp>

namespace fedep {

void add_reproduce_command(CLI::App& app, int& exit_code);

}  // namespace fedep
