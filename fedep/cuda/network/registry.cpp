// The models that run on a GPU: the rows of model/registry.cpp that say so, by the same names.
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/cuda/network/cohort_cnn.h"
#include "fedep/cuda/network/cohort_linear.h"
#include "fedep/cuda/network/cohort_resnet.h"
#include "fedep/cuda/network/cohort_torchscript.h"
#include "fedep/message/table.h"

namespace fedep {
namespace {

constexpr std::array kCohortModels{
    CohortModelRow{.name = "cnn", .make = make_cohort_cnn},
    CohortModelRow{.name = "linear", .make = make_cohort_linear},
    CohortModelRow{.name = "resnet18", .make = make_cohort_resnet18},
    CohortModelRow{.name = "resnet_small", .make = make_cohort_resnet_small},
    CohortModelRow{.name = "torchscript", .make = make_cohort_torchscript, .takes_turns = true},
};

void check_data(const DatasetInfo& data) {
  if (!data.sparse && data.target == TargetKind::label) return;
  throw InputError(
      fmt::format("data {}: cohorts on the GPU have dense features and one label an example; use "
                  "--device cpu",
                  data.name));
}

}  // namespace

std::span<const CohortModelRow> cohort_models() { return kCohortModels; }

const CohortModelRow& find_cohort_model(std::string_view name) {
  for (const CohortModelRow& row : kCohortModels) {
    if (row.name == name) return row;
  }
  throw InputError(fmt::format("model {}: cohorts on the GPU are of {}; use --device cpu",
                               shown(name), alternatives(names_of(kCohortModels))));
}

void check_cohort_model(const ModelSettings& settings, const DatasetInfo& data) {
  check_data(data);
  const CohortModelRow& row = find_cohort_model(settings.name);
  // Whether a module can run there only shows when it does.
  if (row.takes_turns) row.make(settings, data, {});
}

std::unique_ptr<CohortModel> make_cohort_model(const ModelSettings& settings,
                                               const DatasetInfo& data,
                                               const CohortCapacity& capacity) {
  check_data(data);
  return find_cohort_model(settings.name).make(settings, data, capacity);
}

}  // namespace fedep
