#include "fedep/sim/cuda_run.h"

#include <algorithm>

#include "fedep/cuda/device.h"
#include "fedep/cuda/device_sites.h"
#include "fedep/message/check.h"
#include "fedep/sim/cuda_cohort.h"
#include "fedep/sim/cuda_evaluation.h"
#include "fedep/sim/cuda_round.h"

namespace fedep {
namespace {

class RunOnGpu final : public CudaRun {
 public:
  RunOnGpu(const Recipe& recipe, const Task& task, const Dataset& data, SiteStore& home,
           ProductPrecision precision)
      : sites_(home),
        inference_(make_cuda_inference(data, recipe, precision)),
        evaluation_(data, recipe, precision),
        rounds_(recipe.seed, task.population(), *inference_, &sites_) {}

  SiteStore& sites() override { return sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    return rounds_.play(state, phase);
  }
  void bring_home(ServerState& state) override { rounds_.bring_home(state); }

  Metrics evaluate(const ServerState& state, bool last) override {
    const DeviceVector& point = rounds_.point(state);
    const Metrics metrics = evaluation_.evaluate(state, rounds_.global(state), point, last);
    if (!last) return metrics;
    const bool marginal = std::any_of(metrics.begin(), metrics.end(), [](const auto& metric) {
      return std::string_view(metric.first).ends_with("_marginal");
    });
    reliability_ = {};
    if (marginal) {
      reliability_.marginal = evaluation_.reliability();
      evaluation_.at(point);  // once more, for its bins
    }
    reliability_.point = evaluation_.reliability();
    return metrics;
  }
  Reliability reliability() const override { return reliability_; }

 private:
  DeviceSites sites_;
  std::unique_ptr<CudaInference> inference_;
  CudaEvaluation evaluation_;
  CudaRounds rounds_;
  Reliability reliability_;
};

}  // namespace

std::string cuda_problem() { return device_problem(); }

std::string cuda_text(ProductPrecision precision) {
  return fmt::format("cuda {} ({})", device_name(),
                     precision == ProductPrecision::tf32 ? "tf32" : "float32");
}

std::unique_ptr<CudaRun> make_cuda_run(const Recipe& recipe, const Task& task, SiteStore& home,
                                       ProductPrecision precision) {
  if (const std::string why = device_problem(); !why.empty()) throw InputError(why);
  const Dataset* data = task.data();
  if (data == nullptr) {
    throw InputError(
        fmt::format("data {} must run on the CPU, but the device is cuda", recipe.data.name));
  }
  return std::make_unique<RunOnGpu>(recipe, task, *data, home, precision);
}

}  // namespace fedep
