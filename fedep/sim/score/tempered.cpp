#include "fedep/sim/score/tempered.h"

#include <cstdint>
#include <vector>

namespace fedep {

void add_losses(TargetKind target, std::span<const double> predictions, std::size_t outputs,
                const Batch& batch, TemperatureLosses& losses) {
  if (target == TargetKind::label) {
    return losses.add_classes(predictions, outputs, batch.labels);
  }
  if (!has_temperature(target)) return;
  std::vector<std::uint8_t> happened(predictions.size());
  if (target == TargetKind::binary) {
    for (std::size_t i = 0; i < batch.size; ++i) happened[i] = batch.labels[i] != 0;
  } else {
    for (std::size_t i = 0; i < batch.size; ++i) {
      for (std::uint32_t j = batch.tags.offsets[i]; j < batch.tags.offsets[i + 1]; ++j) {
        happened[i * outputs + batch.tags.columns[j]] = 1;
      }
    }
  }
  losses.add_events(predictions, outputs, happened);
}

void temper(TargetKind target, std::span<double> predictions, std::size_t outputs,
            double temperature) {
  if (temperature == 1 || !has_temperature(target)) return;
  if (target == TargetKind::label) {
    temper_classes(predictions, outputs, temperature);
  } else {
    temper_events(predictions, temperature);
  }
}

}  // namespace fedep
