// `fedep list`: what the registries hold.
#pragma once

#include <CLI/CLI.hpp>

namespace fedep {

void add_list_command(CLI::App& app, int& exit_code);

}  // namespace fedep
