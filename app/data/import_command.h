// `fedep data import` cuts a recipe's data into a file per client; `fedep data synth` writes the
// built-in synthetic(alpha, beta) task as a table.
#pragma once

#include "app/command.h"

namespace fedep {

// Both are parts of `fedep data`.
void add_import_command(Command& data, int& exit_code);
void add_synth_command(Command& data, int& exit_code);

}  // namespace fedep
