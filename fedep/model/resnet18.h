// ResNet-18 as the reference has it for CIFAR-100 (Guo+23): pre-activation basic blocks, two in
// each of four groups, norms without scale or offset, no biases but the logits'. 11,218,212 weights
// on 24x24x3 images with 100 classes, of which 6,946,816 are taps that only ever see padding.
//
//   images -> conv 7x7/2 -> max-pool 3x3/2 -> groups at strides 1, 2, 2, 2 -> N -> ReLU -> mean over positions -> logits
//   block: x -> N -> ReLU -> conv 3x3 -> N -> ReLU -> conv 3x3, plus x, or where the shape changes plus
//          N(conv 1x1 of x)
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/model/network.h"

namespace fedep {

struct ResnetShape {
  std::size_t height = 24, width = 24, channels = 3;
  std::size_t outputs = 100;
  std::array<std::size_t, 4> group_channels{64, 128, 256, 512};  // even
  std::size_t blocks = 2;                                        // in a group
  NormKind norm = NormKind::group_norm;
};

std::unique_ptr<Network> make_resnet(const ResnetShape& shape);

}  // namespace fedep
