#include "fedep/sim/cpu_only.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/inference/method.h"
#include "fedep/message/error.h"

namespace fedep {

void refuse_cpu_only(const Recipe& recipe, std::string_view device) {
  for (std::size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseSettings& phase = recipe.phases[i];
    if (!phase.inference) continue;
    const auto method = std::ranges::find(methods(), phase.inference->name, &Method::name);
    if (method == methods().end() || method->on_gpu) continue;
    throw InputError(
        fmt::format("phase.{}.inference.name: {} runs on the CPU, but the device is {}", i,
                    method->name, device));
  }
}

}  // namespace fedep
