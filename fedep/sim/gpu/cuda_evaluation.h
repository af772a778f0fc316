// Scores a state on held-out examples on the GPU, as sim/score/evaluation does on a core: at the mean of
// q, and marginalised over the same draws from q.
//
//   CudaEvaluation evaluation(data, recipe, ProductPrecision::tf32);
//   const Metrics metrics = evaluation.at(mean);
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/device/step_graph.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/cuda/round/score_kernels.h"
#include "fedep/data/dataset.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/metric/temperature.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/score/evaluation.h"
#include "fedep/sim/task.h"

namespace fedep {

class CudaEvaluation {
 public:
  // What is referred to must outlive this. Throws InputError for what runs on the CPU only.
  CudaEvaluation(const Dataset& data, const Recipe& recipe, ProductPrecision precision);

  // As Evaluation's. After a temperature other than 1 the host makes the scores.
  Metrics at(const DeviceVector& theta, const Subsample& which = {}, double temperature = 1);
  // `q` must be proper. Names end in _marginal.
  Metrics marginal(const DeviceMessage& q, const MarginalDraws& draws, double temperature = 1);
  TemperatureLosses losses_at(const DeviceVector& theta);
  TemperatureLosses losses_marginal(const DeviceMessage& q, const MarginalDraws& draws);
  // The bins behind the ECE that the latest at() or marginal() gave.
  const std::vector<ReliabilityBin>& reliability() const { return bins_; }

 private:
  void predict(const float* theta, bool first);
  void predict_chunk(std::size_t chunk, const float* features, const float* theta, bool first);
  // Of the examples chosen, though all were predicted: on a GPU that is sooner done than gathering.
  Metrics scores(int draws, const Subsample& which, double temperature);
  void predict_draws(const DeviceMessage& q, const MarginalDraws& draws);
  // Predicted last, and whose labels these are.
  std::vector<double> probabilities(int draws) const;
  std::vector<std::int32_t> labels() const;
  Metrics tempered_scores(int draws, const Subsample& which, double temperature);
  TemperatureLosses losses(int draws) const;
  std::size_t chunks() const { return (size_ + chunk_ - 1) / chunk_; }

  const Dataset& data_;
  Recipe recipe_;
  std::size_t size_, chunk_;  // examples; of them predicted at a time
  std::unique_ptr<CohortModel> model_;
  bool cached_;                  // all features are on the GPU
  DeviceArray<float> features_;  // [chunks or one, chunk, features]
  DeviceArray<float> theta_, logits_;
  DeviceArray<std::int32_t> labels_, counts_;
  DeviceArray<double> probabilities_;  // summed over draws
  DeviceArray<gpu::ExampleScore> scores_;
  std::unique_ptr<StepGraph> first_draw_, next_draw_;
  std::vector<ReliabilityBin> bins_;  // of the latest scores()
};

}  // namespace fedep
