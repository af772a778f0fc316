// The one function that runs any inference method on a cohort.
//
//   const std::vector<ClientRun> runs = infer_cohort(cohort, algorithm, settings);
#pragma once

#include <vector>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/registry.h"

namespace fedep {

// Runs the chains to their end and makes of them what `algorithm` needs. A client without examples
// returns where it started; its tilted distribution is the cavity.
template <Storage V>
std::vector<ClientRunOf<V>> infer_cohort(Cohort<V>& cohort, const Algorithm& algorithm,
                                         const InferenceSettings& settings) {
  const std::size_t rows = cohort.clients();
  std::vector<ClientRunOf<V>> runs(rows);
  const bool own_chain =
      algorithm.needs == Needs::tilted && method_row<V>(settings.name).method.own_chain;
  for (int epoch = 0; !own_chain && epoch < cohort.epochs(); ++epoch) {
    cohort.sgd_epoch(epoch);
    if (algorithm.needs == Needs::tilted) cohort.accumulate_moments();
    if (algorithm.needs == Needs::samples && epoch >= settings.mixin_epochs) {
      for (std::size_t row = 0; row < rows; ++row) {
        runs[row].samples.push_back(cohort.epoch_average(row));
      }
    }
  }
  if (algorithm.needs != Needs::tilted) {
    for (std::size_t row = 0; row < rows; ++row) runs[row].last = cohort.iterate(row);
    return runs;
  }
  std::vector<Gaussian<V>> tilted = method_row<V>(settings.name).tilted(cohort, settings);
  for (std::size_t row = 0; row < rows; ++row) {
    if (cohort.examples(row) == 0) tilted[row] = cohort.cavity(row);
    runs[row].tilted = std::move(tilted[row]);
  }
  return runs;
}

}  // namespace fedep
