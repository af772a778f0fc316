#include <array>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/sim/gpu/cuda_run.h"

namespace fedep {

ProductPrecision find_precision(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames{"tf32", "float32"};
  if (name == kNames[0]) return ProductPrecision::tf32;
  if (name == kNames[1]) return ProductPrecision::float32;
  throw InputError(unknown_name("precision", name, kNames));
}

}  // namespace fedep
