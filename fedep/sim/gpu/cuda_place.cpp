#include "fedep/sim/gpu/cuda_place.h"

#include <optional>

#include <fmt/ranges.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/device_gauge.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/message/check.h"
#include "fedep/sim/gpu/cuda_cohort.h"
#include "fedep/sim/gpu/cuda_evaluation.h"
#include "fedep/sim/gpu/cuda_rounds.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/score/score_state.h"

namespace fedep {
namespace {

class CudaPlace final : public Place {
 public:
  CudaPlace(const Recipe& recipe, const Task& task, const Dataset& data, SiteStore& home,
            ProductPrecision precision)
      : sites_(home),
        inference_(make_cuda_inference(data, recipe, precision)),
        recipe_(recipe),
        evaluation_(data, recipe, precision),
        rounds_(recipe.seed, task.population(), *inference_, &sites_) {
    if (has_calibration_rows(data)) calibration_.emplace(*data.calibration(), recipe, precision);
    reset_peak_device_memory();
  }

  SiteStore& sites() override { return sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    return rounds_.play(state, phase);
  }
  void bring_home(ServerState& state) override { rounds_.bring_home(state); }

  Metrics evaluate(const ServerState& state, bool last) override {
    const DeviceServerState& there = rounds_.on_gpu(state);
    const DeviceVector point = point_estimate(there);
    const ServerAverageOf<DeviceVector>& average = there.average;
    const StateViewOf<DeviceVector> view{
        .numbers = state,
        .global = there.global,
        .point = point,
        .average = average.rounds > 0 ? &average.mean : nullptr,
        .average_rounds = average.rounds,
        .around_average = [&] { return to_device(spread_around(to_host(average))); }};
    scores_ =
        score_state(evaluation_, calibration_ ? &*calibration_ : nullptr, recipe_, view, last);
    return scores_.metrics;
  }
  Reliability reliability() const override { return scores_.reliability; }
  Temperatures temperatures() const override { return scores_.temperatures; }

  double training_seconds() const override { return inference_->training_seconds(); }
  void wait() override { wait_for_device(); }
  PlaceGauge gauge() override {
    const std::size_t peak = peak_device_memory();  // before the rate's own buffers
    return {.device = device_name(),
            .copy_rate = measured_copy_rate(),
            .product_rate = nominal_tf32_rate(),
            .peak_memory = peak};
  }

 private:
  DeviceSites sites_;
  std::unique_ptr<CudaInference> inference_;
  Recipe recipe_;
  CudaEvaluation evaluation_;
  std::optional<CudaEvaluation> calibration_;
  StateScores scores_;  // of the latest evaluate()
  CudaRounds rounds_;
};

}  // namespace

std::string cuda_problem() { return device_problem(); }

std::string cuda_text(const PlaceOptions& options) {
  return fmt::format("cuda {} ({})", device_name(),
                     options.precision == ProductPrecision::tf32 ? "tf32" : "float32");
}

std::string cuda_remark(const Recipe& recipe) {
  if (!find_cohort_model(recipe.model.name).takes_turns) return "";
  std::vector<std::string_view> others;
  for (const CohortModelRow& row : cohort_models()) {
    if (!row.takes_turns) others.push_back(row.name);
  }
  return fmt::format(
      "model {} runs one client at a time on the GPU, the slower path: {} run all clients of a "
      "round at once",
      recipe.model.name, fmt::join(others, ", "));
}

void check_cuda_place(const Recipe& recipe, const Task& task) {
  if (const std::string why = device_problem(); !why.empty()) throw InputError(why);
  const Dataset* data = task.data();
  if (data == nullptr) {
    throw InputError(
        fmt::format("data {} must run on the CPU, but the device is cuda", recipe.data.name));
  }
  check_cohort_model(recipe.model, data->info());
}

std::unique_ptr<Place> make_cuda_place(const Recipe& recipe, Task& task, SiteStore& home,
                                       const PlaceOptions& options) {
  check_cuda_place(recipe, task);
  return std::make_unique<CudaPlace>(recipe, task, *task.data(), home, options.precision);
}

}  // namespace fedep
