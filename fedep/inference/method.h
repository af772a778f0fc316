// Inference methods by name, and the one function that runs any of them on a cohort.
//
//   const std::vector<ClientRun> runs = infer_cohort(cohort, algorithm, settings);
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/cohort.h"
#include "fedep/inference/laplace.h"
#include "fedep/inference/ngvi.h"
#include "fedep/inference/sample_moments.h"
#include "fedep/inference/scaled_identity.h"

namespace fedep {

enum class MethodKind { scaled_identity, sample_moments, laplace, ngvi };

struct Method {
  std::string_view name;
  std::string_view summary;
  MethodKind kind;
  Family family;            // of its tilted distributions
  std::string_view letter;  // as the paper's tables abbreviate it
};

std::span<const Method> methods();
// Throws InputError that suggests the nearest name.
const Method& find_method(std::string_view name);
// Throws InputError for a setting that makes no sense with the method or the chain's length.
void check_inference(const InferenceSettings& settings, int chain_epochs);
// Throws InputError if a chain ends before its first posterior sample: FedPA would then be FedAvg.
void check_samples(const InferenceSettings& settings, int chain_epochs);

// Runs the chains to their end and makes of them what `algorithm` needs. A client without examples
// returns where it started; its tilted distribution is the cavity.
template <Storage V>
std::vector<ClientRunOf<V>> infer_cohort(Cohort<V>& cohort, const Algorithm& algorithm,
                                         const InferenceSettings& settings) {
  const std::size_t rows = cohort.clients();
  std::vector<ClientRunOf<V>> runs(rows);
  for (int epoch = 0; epoch < cohort.epochs(); ++epoch) {
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
  const MethodKind kind = find_method(settings.name).kind;
  std::vector<Gaussian<V>> tilted;
  if (kind == MethodKind::sample_moments) tilted = cohort.sample_moments_of_all(settings);
  std::vector<V> means;
  if (tilted.empty()) {
    for (std::size_t row = 0; row < rows; ++row) means.push_back(cohort.mean(row));
  }
  if (kind == MethodKind::laplace) tilted = laplace(cohort, means, settings);
  if (kind == MethodKind::ngvi) tilted = ngvi(cohort, means, settings);
  for (std::size_t row = 0; row < rows; ++row) {
    if (cohort.examples(row) == 0) {
      runs[row].tilted = cohort.cavity(row);
    } else if (kind == MethodKind::scaled_identity) {
      runs[row].tilted = scaled_identity(cohort, row, means[row], settings);
    } else if (kind == MethodKind::sample_moments && tilted.empty()) {
      runs[row].tilted = sample_moments(cohort, row, means[row], settings);
    } else {
      runs[row].tilted = std::move(tilted[row]);
    }
  }
  return runs;
}

}  // namespace fedep
