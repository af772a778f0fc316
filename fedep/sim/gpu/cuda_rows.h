// Visits on a GPU: the operations of round/rows.h for all clients of a round at once, in its memory.
// Given the same local inference the host's bits come out, except where sums over all coordinates
// enter a message (a clip's norm, FedPA's products): those run in another order. The test allows 1e-6
// and 1e-5 there.
//
//   CudaExecutor executor(population, *inference, &sites);
//   play_round(state_on_the_gpu, phase, seed, population, executor);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/cuda/round/round_deltas.h"
#include "fedep/round/executor.h"
#include "fedep/round/rows.h"
#include "fedep/sim/gpu/cuda_cohort.h"

namespace fedep {

using DeviceRound = RoundTaskOf<DeviceVector>;
using DeviceRun = ClientRunOf<DeviceVector>;

class CudaRows final : public Rows<DeviceVector> {
 public:
  // `sites` may be null if no phase is stateful. Clients' positions in the population are those in
  // the data set. Everything given must outlive this.
  CudaRows(const Population& population, CudaInference& inference, DeviceSites* sites)
      : population_(population), inference_(inference), sites_(sites) {}

  void begin(const DeviceRound& round, std::span<const AskedClient> asked) override;
  std::vector<DeviceMessage> form_cavities() override;
  std::vector<CavityFacts> examine(const std::vector<DeviceMessage>& cavities) override;
  std::vector<DeviceRun> infer(std::vector<VisitOf<DeviceVector>> visits,
                               std::span<const std::size_t> rows,
                               std::vector<VisitNumbers>& numbers) override;
  void add_quotient(DeviceMessage tilted, std::optional<DeviceMessage> divisor) override {
    deltas_->add_quotient(std::move(tilted), std::move(divisor));
  }
  void add_move(DeviceVector to) override { deltas_->add_move(std::move(to)); }
  void add_points(DeviceVector eta) override { deltas_->add_points(std::move(eta)); }
  void add_flat() override { deltas_->add_flat(); }
  std::vector<double> measure() override { return deltas_->measure(); }
  bool round_to_grid(std::size_t row, double scale) override {
    return deltas_->round_to(round_->grid, row, scale);
  }
  void propose(std::size_t row) override { proposed_.push_back(row); }

  // The exact sum of all that is sent.
  DeviceMessage total() const { return deltas_->total(round_->grid); }
  DeltaUnits units() const { return deltas_->units(round_->grid); }
  // Factors of `taken` (indices in the population, ascending) follow what was sent by this part of
  // their steps; all others stay where they were.
  void settle(std::span<const std::size_t> taken, const StepPart& part);

 private:
  void find_factors();
  void fetch_next_rounds_factors();
  std::vector<DeviceMessage> without_factors() const;
  std::vector<DeviceMessage> proximal_cavities() const;

  const Population& population_;
  CudaInference& inference_;
  DeviceSites* sites_;
  const DeviceRound* round_ = nullptr;
  std::span<const AskedClient> asked_;
  SiteShape shape_;
  std::vector<DeviceSite*> factors_;  // of a stateful phase
  std::vector<MissedSteps> missed_;   // of each, on the server's clock
  std::optional<RoundDeltas> deltas_;
  std::vector<std::size_t> proposed_;  // rows
};

class CudaExecutor final : public ExecutorOf<DeviceVector> {
 public:
  // As CudaRows.
  CudaExecutor(const Population& population, CudaInference& inference, DeviceSites* sites)
      : population_(population), rows_(population, inference, sites) {}

  AnswersOf<DeviceVector> play(const DeviceRound& round,
                               std::span<const ClientTask> clients) override;
  void settle(const DeviceRound& round, std::span<const std::size_t> taken,
              const StepPart& part) override;

 private:
  const Population& population_;
  std::vector<AskedClient> asked_;
  CudaRows rows_;
};

}  // namespace fedep
