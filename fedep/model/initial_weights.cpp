#include "fedep/model/initial_weights.h"

#include <algorithm>

#include "fedep/random/stream.h"

namespace fedep {

void fill_initial_weights(std::uint64_t seed, std::size_t tensor, double scale,
                          std::span<float> out) {
  if (scale == 0) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  const Address address{
      .seed = seed, .purpose = Purpose::initial_weights, .step = std::uint32_t(tensor)};
  fill_truncated_normal(address, out);
  for (float& w : out) w *= float(scale);
}

}  // namespace fedep
