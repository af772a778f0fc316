// Normalisation over channels in two groups, without scale or offset:
// y = (x - mean) / sqrt(variance + 1e-3), population variance.
//
//   per_position   mean and variance of half the channels, at each position of each image (what the
//                  reference computes; see NormKind)
//   group_norm     over all positions and half the channels of each image (Wu and He 2018)
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

class Norm {
 public:
  // `channels` is even.
  Norm(NormKind kind, std::size_t positions, std::size_t channels);

  // y [n, positions, channels] from x; `rectified`, unless null, gets max(y, 0).
  void forward(std::size_t n, const float* x, float* y, float* rectified);
  // dx += derivative of x for the dy of the last forward pass; y as it gave. `through_rectifier`:
  // dy belongs to the rectified output. Changes dy.
  void add_backward(std::size_t n, const float* y, bool through_rectifier, float* dy,
                    float* dx) const;

 private:
  // A group is `segments_` runs of channels_/2 floats, channels_ apart; there are groups(n) of
  // them.
  std::size_t groups(std::size_t n) const { return 2 * n * positions_ / segments_; }
  std::size_t group_begin(std::size_t group) const {
    return group / 2 * segments_ * channels_ + group % 2 * (channels_ / 2);
  }

  std::size_t positions_, channels_, segments_;
  std::vector<float> inverse_std_;  // per group
};

}  // namespace fedep
