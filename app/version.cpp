#include "app/version.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace fedep {

std::string version_text() { return FEDEP_VERSION; }

std::string build_text() { return fmt::format("g++ {}, {}", __VERSION__, FEDEP_BUILD_TYPE); }

std::string machine_text() {
  std::string model = "unknown CPU";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(line.find(':') + 2);
    break;
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

}  // namespace fedep
