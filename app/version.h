// What this program is and where it runs, for --version and the run log.
#pragma once

#include <string>

namespace fedep {

std::string version_text();  // "0.1.0"
std::string build_text();    // compiler and options
std::string machine_text();  // CPU model and number of cores

}  // namespace fedep
