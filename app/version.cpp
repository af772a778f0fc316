#include "app/version.h"

#include <thread>

#include <fmt/format.h>

#include "fedep/model/blas.h"
#include "fedep/sim/machine.h"

namespace fedep {

std::string version_text() { return FEDEP_VERSION; }

std::string build_text() {
  return fmt::format("g++ {}, {}, BLAS kernel {}", __VERSION__, FEDEP_BUILD_TYPE, blas_kernel());
}

std::string machine_text() {
  return fmt::format("{}, {} cores", cpu_model(), std::thread::hardware_concurrency());
}

}  // namespace fedep
