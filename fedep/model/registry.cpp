#include "fedep/model/registry.h"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/model/cnn.h"
#include "fedep/model/linear.h"
#include "fedep/model/resnet18.h"
#ifdef FEDEP_WITH_TORCH
#include "fedep/model/torchscript.h"
#endif

namespace fedep {
namespace {

std::string shape_text(const DatasetInfo& data) {
  std::string text;
  for (const std::int64_t extent : data.features) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  }
  return fmt::format("[{}]{}", text, data.sparse ? " sparse" : "");
}

struct ImageShape {
  std::size_t height, width, channels;
};

// The extents of the data's images, all at least `smallest` high and wide.
ImageShape image_shape(std::string_view model, const DatasetInfo& data, std::int64_t smallest) {
  if (data.sparse || data.features.size() != 3 || data.features[0] < smallest ||
      data.features[1] < smallest || data.features[2] < 1) {
    throw InputError(fmt::format(
        "model {}: data must be images [height, width, channels] of at least {}x{}, but {} has {}",
        model, smallest, smallest, data.name, shape_text(data)));
  }
  return {std::size_t(data.features[0]), std::size_t(data.features[1]),
          std::size_t(data.features[2])};
}

std::unique_ptr<Model> linear(const ModelSettings& settings, const DatasetInfo& data) {
  const LinearShape shape{.features = data.feature_count(),
                          .outputs = data.outputs,
                          .target = data.target,
                          .noise = settings.noise,
                          .initial_scale = settings.initial_scale};
  if (data.sparse) return make_sparse_linear(shape);
  return make_linear(shape);
}

std::unique_ptr<Model> cnn(const ModelSettings& settings, const DatasetInfo& data) {
  const auto [height, width, channels] = image_shape("cnn", data, 6);
  return make_network_model(
      make_cnn({.height = height, .width = width, .channels = channels, .outputs = data.outputs}),
      {data.target, settings.noise});
}

std::unique_ptr<Model> resnet(std::string_view name, const std::array<std::size_t, 4>& channels,
                              const ModelSettings& settings, const DatasetInfo& data) {
  const auto [height, width, image_channels] = image_shape(name, data, 1);
  return make_network_model(make_resnet({.height = height,
                                         .width = width,
                                         .channels = image_channels,
                                         .outputs = data.outputs,
                                         .group_channels = channels,
                                         .norm = settings.norm}),
                            {data.target, settings.noise});
}

std::unique_ptr<Model> resnet18(const ModelSettings& settings, const DatasetInfo& data) {
  return resnet("resnet18", {64, 128, 256, 512}, settings, data);
}

std::unique_ptr<Model> resnet_small(const ModelSettings& settings, const DatasetInfo& data) {
  return resnet("resnet_small", {8, 16, 32, 64}, settings, data);
}

std::unique_ptr<Model> torchscript(const ModelSettings& settings, const DatasetInfo& data) {
#ifdef FEDEP_WITH_TORCH
  return make_torchscript(settings, data);
#else
  (void)settings;
  (void)data;
  throw InputError("model torchscript: needs a build with FEDEP_WITH_TORCH=ON");
#endif
}

constexpr std::array kModels{
    ModelRow{"cnn", "two convolutions and a hidden layer, with dropout (EMNIST; 1,206,590 weights)",
             cnn},
    ModelRow{"linear", "logistic or linear regression, on dense or sparse features", linear},
    ModelRow{"resnet18", "pre-activation ResNet-18 (CIFAR-100; 11,218,212 weights)", resnet18},
    ModelRow{"resnet_small", "the same with an eighth of the channels, for trials", resnet_small},
    ModelRow{"torchscript", "a TorchScript module from model.path", torchscript},
};

}  // namespace

std::span<const ModelRow> models() { return kModels; }

std::unique_ptr<Model> make_model(const ModelSettings& settings, const DatasetInfo& data) {
  if (data.outputs == 0 || data.features.empty() || data.feature_count() == 0) {
    throw InputError(
        fmt::format("make_model: data {} must have features and outputs, but has {} and {}",
                    shown(data.name), shape_text(data), data.outputs));
  }
  std::vector<std::string_view> names;
  for (const ModelRow& row : kModels) {
    if (row.name == settings.name) return row.make(settings, data);
    names.push_back(row.name);
  }
  throw InputError(unknown_name("model", settings.name, names));
}

}  // namespace fedep
