#include "fedep/model/registry.h"

#include <array>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/table.h"
#include "fedep/model/cnn.h"
#include "fedep/model/image_shape.h"
#include "fedep/model/linear.h"
#include "fedep/model/resnet18.h"
#ifdef FEDEP_WITH_TORCH
#include "fedep/model/torchscript.h"
#endif

namespace fedep {
namespace {

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
    ModelRow{
        .name = "cnn",
        .summary = "two convolutions and a hidden layer, with dropout (EMNIST; 1,206,590 weights)",
        .make = cnn_model,
        .step_work = cnn_work,
        .module_source = cnn_module_source,
        .on_gpu = true},
    ModelRow{.name = "linear",
             .summary = "logistic or linear regression, on dense or sparse features",
             .make = linear_model,
             .step_work = linear_work,
             .module_source = linear_module_source,
             .is_linear = true,
             .on_gpu = true},
    ModelRow{.name = "resnet18",
             .summary = "pre-activation ResNet-18 (CIFAR-100; 11,218,212 weights)",
             .make = resnet18_model,
             .step_work = resnet18_work,
             .module_source = resnet_module_source,
             .on_gpu = true},
    ModelRow{.name = "resnet_small",
             .summary = "the same with an eighth of the channels, for trials",
             .make = resnet_small_model,
             .step_work = resnet_small_work,
             .module_source = resnet_module_source,
             .on_gpu = true},
    ModelRow{.name = "torchscript",
             .summary = "a TorchScript module from model.path",
             .make = torchscript,
             .is_module = true,
             .on_gpu = true},
};

}  // namespace

std::span<const ModelRow> models() { return kModels; }

const ModelRow& find_model(std::string_view name) { return find_row("model", kModels, name); }

std::unique_ptr<Model> make_model(const ModelSettings& settings, const DatasetInfo& data) {
  if (data.outputs == 0 || data.features.empty() || data.feature_count() == 0) {
    throw InputError(
        fmt::format("make_model: data {} must have features and outputs, but has {} and {}",
                    shown(data.name), shape_text(data), data.outputs));
  }
  const ModelRow& row = find_model(settings.name);
  if (data.has_exposure && !row.is_linear) {
    throw InputError(fmt::format("model {}: exposures (data.exposure_column) need the model linear",
                                 settings.name));
  }
  const std::string_view key = settings.site_intercept ? "site_intercept" : "noise = \"estimated\"";
  if ((settings.site_intercept || settings.estimate_noise) && !row.is_linear) {
    throw InputError(fmt::format("model.{} needs the model linear, but is {}", key, settings.name));
  }
  return row.make(settings, data);
}

}  // namespace fedep
