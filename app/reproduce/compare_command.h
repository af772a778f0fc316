// `fedep compare RUN…`: the last scores of several runs side by side.
#pragma once

#include "app/command.h"

namespace fedep {

void add_compare_command(Command& app, int& exit_code);

}  // namespace fedep
