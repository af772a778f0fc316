#include "fedep/sim/place/serial.h"

namespace fedep {
namespace {

class Serial final : public CollectingExecutor {
 public:
  Serial(const Population& population, LocalInference& inference, SiteStore* sites)
      : population_(population), inference_(inference), sites_(sites) {}

  void play_into(Collector& answers, const RoundTask& round, std::span<const ClientTask> clients,
                 const std::function<void()>& meanwhile) override {
    for (const ClientTask& task : clients) {
      if (meanwhile) meanwhile();
      answers.add(play_visit(round, task, population_[task.client], sites_, inference_));
    }
  }

  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    settle_visits(round, population_, taken, part, *sites_);
    if (!taken.empty()) keep_mean(round, *sites_);
  }

 private:
  const Population& population_;
  LocalInference& inference_;
  SiteStore* sites_;
};

}  // namespace

std::unique_ptr<CollectingExecutor> make_serial(const Population& population,
                                                LocalInference& inference, SiteStore* sites) {
  return std::make_unique<Serial>(population, inference, sites);
}

}  // namespace fedep
