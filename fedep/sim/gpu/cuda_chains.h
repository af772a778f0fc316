// The chains of a cohort on the GPU, row c of every buffer client c's: what sim/chain/chain's DenseChain
// is for one client on a core. A step is captured once and launched again in every later step,
// round and phase of the same shape. Coordinates without gradients wait until somebody asks for
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fedep/cuda/device/coordinates.h"
#include "fedep/cuda/device/device_data.h"
#include "fedep/cuda/device/device_gauge.h"
#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/device/step_graph.h"
#include "fedep/sim/gpu/cuda_order.h"
#include "fedep/sim/gpu/cuda_widths.h"

namespace fedep {

class CudaChains {
 public:
  explicit CudaChains(const CudaParts& parts);

  // `with_eta`: cavities have an eta that is not zero. `round` must stay until the last call; steps
  // cost least if its visits come in the order of their sizes, largest first.
  void begin(const CohortRound& round, const DeviceVector& start, bool with_eta);
  void run_epoch(int epoch);
  void accumulate_moments();

  DeviceVector iterate(std::size_t row);
  DeviceVector epoch_average(std::size_t row);
  DeviceVector mean(std::size_t row);
  DeviceVector variance(std::size_t row);
  // What inference/sample_moments.h makes of them, for all rows.
  std::vector<DeviceMessage> sample_moments(const InferenceSettings& settings);
  std::size_t steps(std::size_t row) const { return steps_[row]; }
  double loss_sum(std::size_t row);  // waits for the GPU
  // From begin() to the end of the latest epoch. Waits for the GPU.
  double training_seconds() const { return timer_.seconds(); }

  // Rows as they lie in memory, for the Fisher passes that follow the chains.
  const float* mean_rows();
  const float* lambda_rows() const { return lambda_.data(); }  // Λ_p
  bool diagonal() const { return diagonal_; }
  float* spare_rows() { return momentum_.data(); }  // whose contents are not needed any more

 private:
  // So many steps of an epoch that go through this width's clients.
  struct Stretch {
    std::size_t width = 0, steps = 0;
  };

  gpu::ChainRows rows(std::size_t clients);
  void start_rows(const DeviceVector& start, bool with_eta);
  void drop_stale_graphs();
  void capture(const Stretch& stretch);
  void launch(const Stretch& stretch);
  void enqueue_step(std::size_t clients);
  gpu::RateTable rates_from(int epoch) const;
  int room_for_samples();
  void catch_up();
  DeviceVector copy_of_row(const DeviceArray<float>& rows, std::size_t row) const;

  CudaParts parts_;
  CohortBatches batches_;
  const CohortRound* round_ = nullptr;
  DeviceArray<float> theta_, momentum_, eta_, lambda_, sum_, mean_, squares_;
  DeviceArray<float> per_example_, sigma_;
  DeviceArray<float> rate_, rates_;  // of the present step; of all, where they are scheduled
  std::size_t epoch_length_ = 0;     // steps of the cohort
  int epochs_run_ = 0;
  DeviceArray<double> loss_, partial_;
  DeviceArray<const float*> cavity_etas_, cavity_lambdas_;  // of begin()
  DeviceArray<float> decays_;
  DeviceArray<float> added_, numbers_, bounds_;  // of sample_moments()
  DeviceArray<float*> etas_, lambdas_;
  DeviceArray<const float*> cavities_;
  DeviceArray<std::int32_t> epoch_steps_;
  DeviceArray<StreamAddress> langevin_;
  bool with_eta_ = false, diagonal_ = false;
  std::vector<std::size_t> steps_, own_batches_;  // per row: made so far; of an epoch
  int samples_ = 0;
  DeviceArray<float> kept_samples_;  // of coordinates with gradients
  std::optional<int> most_kept_;     // of them
  int kept_ = 0;                     // of samples_, not in mean_ and squares_ yet
  // Epochs that coordinates without gradients have yet to make: first those with a sample at their
  // end.
  int waiting_sampled_ = 0, waiting_ = 0;
  DeviceTimer timer_;
  std::vector<double> losses_;  // once they were read back

  // What the captured step depends on besides the shape of the parts.
  struct Captured {
    const void *eta = nullptr, *lambda = nullptr, *sum = nullptr;
    const void* rates = nullptr;
    bool diagonal = false, averages = false, langevin = false, loss_times_batch = false;
    float lr = 0, mu = 0;

    bool operator==(const Captured&) const = default;
  };
  Captured captured_;
  bool stale_ = true;

  struct Graphs {
    std::unique_ptr<StepGraph> one = nullptr, many = nullptr;
    std::size_t many_steps = 0;  // of `many`
  };
  CohortWidths widths_;
  std::vector<Graphs> graphs_;      // of these widths
  std::vector<Stretch> stretches_;  // of an epoch
};

}  // namespace fedep
