// Scores a state on held-out examples on the GPU, as sim/evaluation does on a core: at the mean of
// q, and marginalised over the same draws from q.
//
//   CudaEvaluation evaluation(data, recipe, ProductPrecision::tf32);
//   const Metrics metrics = evaluation.evaluate(state, global, last);
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/cuda/cohort_model.h"
#include "fedep/cuda/device_vector.h"
#include "fedep/cuda/score_kernels.h"
#include "fedep/cuda/step_graph.h"
#include "fedep/data/dataset.h"
#include "fedep/metric/calibration.h"
#include "fedep/round/run_log.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/evaluation.h"

namespace fedep {

class CudaEvaluation {
 public:
  // What is referred to must outlive this. Throws InputError for what runs on the CPU only.
  CudaEvaluation(const Dataset& data, const Recipe& recipe, ProductPrecision precision);

  Metrics at(const DeviceVector& theta);
  // `q` must be proper. Names end in _marginal.
  Metrics marginal(const DeviceMessage& q, const MarginalDraws& draws);
  // What a task's evaluate() gives after a round. `global` is q and `point` the point estimate of
  // it; of `state` only the numbers are read.
  Metrics evaluate(const ServerState& state, const DeviceMessage& global, const DeviceVector& point,
                   bool last);
  // The same where only q is at hand. Reads state.initial too.
  Metrics evaluate(const ServerState& state, const DeviceMessage& global, bool last);

  // Bins behind the ECE of the latest at() or marginal().
  const std::vector<ReliabilityBin>& reliability() const { return reliability_; }

 private:
  void predict(const float* theta, bool first);
  void predict_chunk(std::size_t chunk, const float* features, const float* theta, bool first);
  Metrics scores(int draws);
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
  std::vector<ReliabilityBin> reliability_;
};

}  // namespace fedep
