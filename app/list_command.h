// `fedep list`: what the tables hold.
#pragma once

#include <string>
#include <string_view>

#include "app/command.h"

namespace fedep {

// One table by its name, all of them for no name. Throws InputError for a table that is not there.
std::string list_text(std::string_view what);

void add_list_command(Command& app, int& exit_code);

}  // namespace fedep
