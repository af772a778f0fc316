// The models there are, by name.
//
//   const std::unique_ptr<Model> model = make_model({.name = "resnet18"}, data.info());
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"

namespace fedep {

struct ModelRow {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Model> (*make)(const ModelSettings& settings, const DatasetInfo& data);
};

std::span<const ModelRow> models();

// The model of these settings, for data of this shape. Throws InputError for a name that is not in
// the table and for data that the model cannot take.
std::unique_ptr<Model> make_model(const ModelSettings& settings, const DatasetInfo& data);

}  // namespace fedep
