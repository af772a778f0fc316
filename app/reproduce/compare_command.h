// `fedep compare RUN…`: the last scores of several runs side by side.
#pragma once

#include <CLI/CLI.hpp>

namespace fedep {

void add_compare_command(CLI::App& app, int& exit_code);

}  // namespace fedep
