#include "app/version.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "fedep/model/blas.h"

namespace fedep {
namespace {

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

}  // namespace

std::string version_text() { return FEDEP_VERSION; }

std::string build_text() {
  return fmt::format("g++ {}, {}, BLAS kernel {}", __VERSION__, FEDEP_BUILD_TYPE, blas_kernel());
}

std::string machine_text() {
  return fmt::format("{}, {} cores", cpu_model(), std::thread::hardware_concurrency());
}

std::string device_text(std::size_t threads) {
  return fmt::format("cpu: {}, {} thread{}", cpu_model(), threads, threads == 1 ? "" : "s");
}

}  // namespace fedep
