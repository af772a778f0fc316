// Scores a state on held-out examples on the GPU, as sim/evaluation does on a core: at the mean of
// q, and marginalised over the same draws from q.
//
//   CudaEvaluation evaluation(data, recipe, ProductPrecision::tf32);
//   const Metrics metrics = evaluation.evaluate(state, global, point, last);
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
#include "fedep/round/server_state.h"
#include "fedep/sim/evaluation.h"
#include "fedep/sim/task.h"

namespace fedep {

class CudaEvaluation {
 public:
  // What is referred to must outlive this. Throws InputError for what runs on the CPU only.
  CudaEvaluation(const Dataset& data, const Recipe& recipe, ProductPrecision precision);

  Metrics at(const DeviceVector& theta, const Subsample& which = {});
  // `q` must be proper. Names end in _marginal.
  Metrics marginal(const DeviceMessage& q, const MarginalDraws& draws);
  // What a task's evaluate() gives after a round. `global` is q and `point` the point estimate of
  // it; of `state` only the numbers are read.
  Metrics evaluate(const ServerState& state, const DeviceMessage& global, const DeviceVector& point,
                   bool last);
  // Of the latest evaluate().
  const Reliability& reliability() const { return reliability_; }

 private:
  void predict(const float* theta, bool first);
  void predict_chunk(std::size_t chunk, const float* features, const float* theta, bool first);
  // Of the examples chosen, though all were predicted: on a GPU that is sooner done than gathering.
  Metrics scores(int draws, const Subsample& which);
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
  Reliability reliability_;
};

}  // namespace fedep
