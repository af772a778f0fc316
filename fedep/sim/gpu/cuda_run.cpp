#include "fedep/sim/gpu/cuda_run.h"

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/message/check.h"
#include "fedep/sim/gpu/cuda_cohort.h"
#include "fedep/sim/gpu/cuda_evaluation.h"
#include "fedep/sim/gpu/cuda_round.h"

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
    return evaluation_.evaluate(state, rounds_.global(state), rounds_.point(state), last);
  }
  Reliability reliability() const override { return evaluation_.reliability(); }

 private:
  DeviceSites sites_;
  std::unique_ptr<CudaInference> inference_;
  CudaEvaluation evaluation_;
  CudaRounds rounds_;
};

}  // namespace

std::string cuda_problem() { return device_problem(); }

std::string cuda_text(ProductPrecision precision) {
  return fmt::format("cuda {} ({})", device_name(),
                     precision == ProductPrecision::tf32 ? "tf32" : "float32");
}

std::string cuda_remark(const Recipe& recipe) {
  if (recipe.model.name != "torchscript") return "";
  return "model torchscript runs one client at a time on the GPU, the slower path: cnn, linear, "
         "resnet18 and resnet_small run all clients of a round at once";
}

void check_cuda_run(const Recipe& recipe, const Task& task) {
  if (const std::string why = device_problem(); !why.empty()) throw InputError(why);
  const Dataset* data = task.data();
  if (data == nullptr) {
    throw InputError(
        fmt::format("data {} must run on the CPU, but the device is cuda", recipe.data.name));
  }
  check_cohort_model(recipe.model, data->info());
  // Whether a module can run there only shows when it does.
  if (recipe.model.name == "torchscript") make_cohort_model(recipe.model, data->info(), {});
}

std::unique_ptr<CudaRun> make_cuda_run(const Recipe& recipe, const Task& task, SiteStore& home,
                                       ProductPrecision precision) {
  check_cuda_run(recipe, task);
  return std::make_unique<RunOnGpu>(recipe, task, *task.data(), home, precision);
}

}  // namespace fedep
