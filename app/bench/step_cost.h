// What a client's SGD step asks of a machine at least, counted from the model's shapes: the floors
// that `fedep bench` holds its times against.
#pragma once

#include <cstddef>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

struct StepCost {
  std::size_t weights = 0;
  std::size_t live_weights = 0;   // those that data can move
  std::size_t multiply_adds = 0;  // forward, one example, padding left out
  std::size_t activations = 0;    // floats that layers read and write, one example, both passes
  bool counted = false;           // else only the weights are known

  // Backward costs twice what forward does.
  double operations(double batch) const { return 2.0 * 3.0 * double(multiply_adds) * batch; }
  // Seven passes over live weights: forward and backward read them, the update reads weights,
  // momentum and eta and writes weights and momentum; gradients stay on the chip.
  double bytes(double batch) const {
    return 4.0 * (7.0 * double(live_weights) + double(activations) * batch);
  }
};

StepCost step_cost(const ModelSettings& settings, const DatasetInfo& data);

}  // namespace fedep
