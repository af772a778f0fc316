#include "fedep/sim/gpu/cuda_rank_executor.h"

#include <utility>
#include <vector>

#include "fedep/cuda/round/device_state.h"  // play_visits() finds their operations
#include "fedep/cuda/round/sample_moves.h"
#include "fedep/round/visit.h"
#include "fedep/sim/gpu/cuda_rank_sum.h"

namespace fedep {
namespace {

class CudaRankExecutor final : public ExecutorOf<DeviceVector> {
 public:
  CudaRankExecutor(SharingParts parts, CudaInference& inference, DeviceSites& sites)
      : rows_(parts.population, inference, &sites), sum_(parts.ranks), shares_(std::move(parts)) {
    inference.call_meanwhile([&ranks = shares_.ranks()] { ranks.progress(); });
  }

  AnswersOf<DeviceVector> play(const DeviceRound& round,
                               std::span<const ClientTask> clients) override {
    shares_.begin(round.seed, round.round, round.phase, clients);
    asked_.clear();
    for (const ClientTask& task : shares_.own(clients)) {
      asked_.push_back({task, &shares_.population()[task.client]});
    }
    const std::vector<Report> mine = play_visits<DeviceVector>(round, asked_, rows_);
    DeltaUnits units = rows_.units();  // the GPU adds while ranks talk
    std::vector<Report> reports = gather_reports(shares_.ranks(), mine);
    DeviceMessage total = sum_.total(std::move(units), round.grid);
    shares_.end(round.phase);
    return {.total = std::move(total), .reports = std::move(reports)};
  }

  void settle(const DeviceRound& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    rows_.settle(shares_.own_of(taken), part);
    shares_.settled(round.round, taken);
  }

 private:
  std::vector<AskedClient> asked_;
  CudaRows rows_;
  CudaRankSum sum_;
  RoundShares shares_;
};

}  // namespace

std::unique_ptr<ExecutorOf<DeviceVector>> make_cuda_rank_executor(SharingParts parts,
                                                                  CudaInference& inference,
                                                                  DeviceSites& sites) {
  return std::make_unique<CudaRankExecutor>(std::move(parts), inference, sites);
}

}  // namespace fedep
