// Initial weights: each tensor has random numbers of its own, whatever comes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedep {

// Normal of this scale, cut at two standard deviations and not rescaled after (so the standard
// deviation is 0.88 `scale`); zeros for scale 0. `tensor` is its place in the layout.
void fill_initial_weights(std::uint64_t seed, std::size_t tensor, double scale,
                          std::span<float> out);

}  // namespace fedep
