// Cohort operations on one CPU core: chains one after another, Fisher information by the model's
// own per-example squares.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fedep/inference/cohort.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {

class CpuCohort : public Cohort<HostVector<float>> {
 public:
  // Of a row's chain.
  virtual std::optional<FreeMean> free_mean(std::size_t row) const = 0;
};

// One row per input. The inputs' references must outlive the cohort.
std::unique_ptr<CpuCohort> make_cpu_cohort(Model& model, const std::vector<ChainInput>& inputs);

}  // namespace fedep
