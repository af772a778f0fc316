// The models there are, by name. A row holds all that the program asks of a model on a core; what runs
// on a GPU is a row of cuda/network/registry.cpp too.
//
//   const std::unique_ptr<Model> model = make_model({.name = "resnet18"}, data.info());
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/model/step_work.h"

namespace fedep {

struct ModelRow {
  std::string_view name;
  std::string_view summary;
  // Throws InputError for data that the model cannot take.
  std::unique_ptr<Model> (*make)(const ModelSettings& settings, const DatasetInfo& data);
  // What a step asks of a machine; null, or nothing: nobody has counted.
  std::optional<StepWork> (*step_work)(const DatasetInfo& data) = nullptr;
  // forward() in TorchScript, with weights by the layout's names; null: cannot be written so.
  std::string (*module_source)(const ModelSettings& settings, const Layout& layout) = nullptr;
  bool is_module = false;  // a TorchScript module itself, the file at model.path
  bool is_linear = false;  // logits = x W + b: coefficients of the features, then the intercepts
  bool on_gpu = false;     // cuda/network/registry.cpp has it
};

std::span<const ModelRow> models();

// Throws InputError that suggests the nearest name.
const ModelRow& find_model(std::string_view name);

// The model of these settings, for data of this shape. Throws InputError for a name that is not in
// the table and for data that the model cannot take.
std::unique_ptr<Model> make_model(const ModelSettings& settings, const DatasetInfo& data);

}  // namespace fedep
