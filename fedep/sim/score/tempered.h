// Temperatures (metric/temperature.h) of a model's predictions, whatever its targets are.
#pragma once

#include <cstddef>
#include <span>

#include "fedep/data/batch.h"
#include "fedep/metric/temperature.h"
#include "fedep/model/likelihood.h"

namespace fedep {

// Numbers have their noise instead, counts their mean.
inline bool has_temperature(TargetKind target) {
  return target != TargetKind::real && target != TargetKind::count;
}

// predictions [batch.size, outputs], as predictions_of() makes them.
void add_losses(TargetKind target, std::span<const double> predictions, std::size_t outputs,
                const Batch& batch, TemperatureLosses& losses);

// In place; 1 changes nothing, not a bit.
void temper(TargetKind target, std::span<double> predictions, std::size_t outputs,
            double temperature);

}  // namespace fedep
