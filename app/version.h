// What this program is and where it runs, for --version and the run log.
#pragma once

#include <cstddef>
#include <string>

namespace fedep {

std::string version_text();                    // "0.1.0"
std::string build_text();                      // compiler and options
std::string machine_text();                    // CPU model and number of cores
std::string device_text(std::size_t threads);  // "cpu: <model>, 2 threads"

}  // namespace fedep
