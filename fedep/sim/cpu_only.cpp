#include "fedep/sim/cpu_only.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/method.h"
#include "fedep/message/error.h"

namespace fedep {

void refuse_cpu_only(const Recipe& recipe, std::string_view device) {
  for (std::size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseSettings& phase = recipe.phases[i];
    const auto refuse = [&](std::string_view key, std::string_view name) {
      throw InputError(fmt::format("phase.{}.{}: {} runs on the CPU, but the device is {}", i, key,
                                   name, device));
    };
    if (!find_algorithm(phase.algorithm).on_gpu) refuse("algorithm", phase.algorithm);
    if (!phase.inference) continue;
    const auto method = std::ranges::find(methods(), phase.inference->name, &Method::name);
    if (method != methods().end() && !method->on_gpu) refuse("inference.name", method->name);
  }
}

}  // namespace fedep
