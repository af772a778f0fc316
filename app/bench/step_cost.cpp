#include "app/bench/step_cost.h"

#include <memory>
#include <optional>

#include "fedep/model/registry.h"

namespace fedep {

StepCost step_cost(const ModelSettings& settings, const DatasetInfo& data) {
  StepCost cost;
  const std::unique_ptr<Model> model = make_model(settings, data);
  cost.weights = model->size();
  for (const Range& range : model->live()) cost.live_weights += range.end - range.begin;
  const ModelRow& row = find_model(settings.name);
  const std::optional<StepWork> work =
      row.step_work == nullptr ? std::nullopt : row.step_work(data);
  cost.counted = work.has_value();
  if (work) {
    cost.multiply_adds = work->multiply_adds;
    cost.activations = work->activations;
  }
  return cost;
}

}  // namespace fedep
