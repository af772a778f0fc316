// Squared gradients of a cohort on the GPU, for Laplace and NGVI: the passes of sim/chain/cpu_cohort,
// with the same batches and addresses, for all clients at once and without a vector per draw.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fedep/cuda/round/fisher_kernels.h"
#include "fedep/sim/chain/label_tape.h"
#include "fedep/sim/gpu/cuda_chains.h"

namespace fedep {

class CudaFisher {
 public:
  // A model of the parts' kind with room for so many clients.
  using MakeModel = std::function<std::unique_ptr<CohortModel>(std::size_t clients)>;

  // `make_model` may be null: then a client has one minibatch or draw at a time. `tape`: labels are
  // not drawn but taken from there; for tests. May be null.
  CudaFisher(const CudaParts& parts, MakeModel make_model, const LabelTape* tape);

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
  // What a captured pass points to.
  struct Captured {
    const float *theta = nullptr, *mean = nullptr;
    int draws = 0;

    bool operator==(const Captured&) const = default;
  };
  // All that depends on how many rows a client has.
  struct Rows {
    Rows(const CudaParts& parts, const FisherRows& asked, const MakeModel& make_model);
    gpu::DrawStreams streams();

    FisherRows layout;
    std::size_t count;                        // of all clients
    std::unique_ptr<CohortModel> wide_model;  // where the parts' has too few
    CohortModel& model;
    CohortBatches batches;
    std::vector<std::size_t> widths;  // of the steps of the schedule that is loaded
    DeviceArray<std::int32_t> draw;
    DeviceArray<StreamAddress> dropout, dropout_again, labels, weights;
    DeviceArray<float> theta;  // draws, where they have room nowhere else
    Captured captured;
    std::vector<std::unique_ptr<StepGraph>> graphs;  // of a pass, for each width
  };

  std::size_t most_at_once() const;
  const std::vector<Minibatches>& passes(int epochs);
  // Rows of this layout, at the beginning of so many epochs.
  Rows& load(int epochs, const FisherRows& layout);
  // Adds the squared gradients of the first clients' current batches at theta to fisher_; theta has
  // a row for every client, or for every draw. `step` and `draw` for the tape.
  void add_squares(Rows& rows, std::size_t clients, const float* theta, std::size_t step, int draw);
  std::vector<std::int32_t> labels_of_tape(const Rows& rows, std::size_t step, int draw) const;
  // One pass of this width, from a graph unless labels come from the tape.
  void launch(Rows& rows, std::size_t width, const Captured& wanted,
              const std::function<void()>& enqueue);
  std::vector<DeviceVector> copies_of(const DeviceArray<float>& rows) const;

  CudaParts parts_;
  CohortWidths widths_;
  MakeModel make_model_;
  const LabelTape* tape_;
  const CohortRound* round_ = nullptr;
  std::optional<int> epochs_;        // of passes_
  std::vector<Minibatches> passes_;  // of the clients
  bool loaded_ = false;              // rows_ have this round's schedule
  std::unique_ptr<Rows> rows_;
  DeviceArray<float> fisher_, nu_, lambda_, examples_, rest_nu_, bounds_;
  DeviceArray<double> partial_;
};

}  // namespace fedep
