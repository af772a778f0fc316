// `fedep run` and `fedep check`: a recipe played, or only read and checked.
#pragma once

#include "app/command.h"

namespace fedep {

void add_run_command(Command& app, int& exit_code);
void add_check_command(Command& app, int& exit_code);

}  // namespace fedep
