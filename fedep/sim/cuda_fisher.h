// Squared gradients of a cohort on the GPU, for Laplace and NGVI: the passes of sim/cpu_cohort,
// with the same batches and addresses, for all rows at once and without a vector per draw.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "fedep/cuda/fisher_kernels.h"
#include "fedep/sim/cuda_chains.h"
#include "fedep/sim/label_tape.h"

namespace fedep {

class CudaFisher {
 public:
  // `tape`: labels are not drawn but taken from there; for tests. May be null.
  CudaFisher(const CudaParts& parts, const LabelTape* tape);

  // `round` must stay until the last call.
  void begin(const CohortRound& round);

  int batches(std::size_t row, int epochs);
  // The Cohort's operations of these names.
  std::vector<DeviceVector> squared_gradients(const std::vector<DeviceVector>& theta, int t,
                                              int epochs, int draw, CudaChains& chains);
  DeviceVector noise(std::size_t row, int t, int draw) const;
  std::vector<DeviceVector> fisher_sum(int epochs, CudaChains& chains);
  std::vector<DeviceVector> running_fisher(const InferenceSettings& settings, CudaChains& chains);

 private:
  void load(int epochs);
  int most_batches() const;
  gpu::DrawStreams streams();
  // Adds the current batch's squared gradients at theta to fisher_.
  void add_squares(const float* theta);
  void add_squares_of_tape(const float* theta, int t, int draw);
  std::vector<DeviceVector> copies_of(const DeviceArray<float>& rows) const;

  CudaParts parts_;
  const LabelTape* tape_;
  CohortBatches batches_;
  const CohortRound* round_ = nullptr;
  std::optional<int> epochs_;        // of the schedule that is loaded
  std::vector<Minibatches> passes_;  // of the rows
  DeviceArray<std::int32_t> draw_;
  DeviceArray<StreamAddress> dropout_, dropout_again_, labels_, weights_;
  DeviceArray<float> fisher_, nu_, lambda_, examples_, rest_nu_, bounds_;
  DeviceArray<double> partial_;

  // Graphs are captured anew when what they point to has moved.
  struct Captured {
    const float *theta = nullptr, *mean = nullptr;
    int draws = 0;

    bool operator==(const Captured&) const = default;
  };
  Captured captured_sum_, captured_draw_;
  std::unique_ptr<StepGraph> sum_graph_, draw_graph_;
};

}  // namespace fedep
