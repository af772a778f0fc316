// `fedep run` and `fedep check`: a recipe played, or only read and checked.
#pragma once

#include <CLI/CLI.hpp>

namespace fedep {

void add_run_command(CLI::App& app, int& exit_code);
void add_check_command(CLI::App& app, int& exit_code);

}  // namespace fedep
