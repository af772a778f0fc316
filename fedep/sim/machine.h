// What this computer is, in words for logs.
#pragma once

#include <string>

namespace fedep {

std::string cpu_model();  // as the kernel names it

}  // namespace fedep
