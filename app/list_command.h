// `fedep list`: what the registries hold.
#pragma once

#include "app/command.h"

namespace fedep {

void add_list_command(Command& app, int& exit_code);

}  // namespace fedep
