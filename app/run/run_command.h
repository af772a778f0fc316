// `fedep run` and `fedep check`: a recipe played, or only read and checked.
#pragma once

#include <memory>

#include "app/command.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// `ranks`: that play runs together, once the line is parsed; null: this process alone.
void add_run_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks);
void add_check_command(Command& app, int& exit_code);

}  // namespace fedep
