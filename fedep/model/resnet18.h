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
#include <optional>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/network.h"
#include "fedep/model/step_work.h"

namespace fedep {

// Channels of the groups, all even.
using ResnetChannels = std::array<std::size_t, 4>;
inline constexpr ResnetChannels kResnet18Channels{64, 128, 256, 512};
inline constexpr ResnetChannels kResnetSmallChannels{8, 16, 32, 64};

struct ResnetShape {
  std::size_t height = 24, width = 24, channels = 3;
  std::size_t outputs = 100;
  ResnetChannels group_channels = kResnet18Channels;
  std::size_t blocks = 2;  // in a group
  NormKind norm = NormKind::group_norm;
};

std::unique_ptr<Network> make_resnet(const ResnetShape& shape);

// What the rows of resnet18 and of resnet_small hold in registry.cpp.
std::unique_ptr<Model> resnet18_model(const ModelSettings& settings, const DatasetInfo& data);
std::unique_ptr<Model> resnet_small_model(const ModelSettings& settings, const DatasetInfo& data);
std::optional<StepWork> resnet18_work(const DatasetInfo& data);
std::optional<StepWork> resnet_small_work(const DatasetInfo& data);
std::string resnet_module_source(const ModelSettings& settings, const Layout& layout);

}  // namespace fedep
