#include "fedep/sim/gpu/cuda_place.h"

#include <cstdlib>
#include <optional>

#include <fmt/ranges.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/device_gauge.h"
#include "fedep/cuda/round/device_sites.h"
#include "fedep/cuda/round/device_step.h"
#include "fedep/message/check.h"
#include "fedep/sim/gpu/cuda_cohort.h"
#include "fedep/sim/gpu/cuda_evaluation.h"
#include "fedep/sim/gpu/cuda_factor_gap.h"
#include "fedep/sim/gpu/cuda_rank_executor.h"
#include "fedep/sim/gpu/cuda_rounds.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/place/mpi_place.h"
#include "fedep/sim/ranks/mpi_ranks.h"
#include "fedep/sim/score/score_state.h"

namespace fedep {
namespace {

// One process's GPU, or one rank's of several that play together.
class CudaPlace final : public Place {
 public:
  CudaPlace(const Recipe& recipe, const Task& task, const Dataset& data, SiteStore& home,
            const PlaceOptions& options)
      : sites_(home),
        inference_(make_cuda_inference(data, recipe, options.precision)),
        recipe_(recipe),
        population_(task.population()),
        ranks_(options.ranks),
        evaluation_(data, recipe, options.precision) {
    if (ranks_ != nullptr) all_sites_.emplace(*ranks_, sites_);
    rounds_.emplace(recipe.seed, task.population(), executor(task.population()));
    if (has_calibration_rows(data)) {
      calibration_.emplace(*data.calibration(), recipe, options.precision);
    }
    reset_peak_device_memory();
  }

  SiteStore& sites() override {
    if (all_sites_) return *all_sites_;
    return sites_;
  }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    const RoundNumbers numbers = rounds_->play(state, phase);
    if (ranks_ != nullptr) {
      const DeviceServerState& there = rounds_->on_gpu(state);
      check_same_hash(*ranks_, state.round, hash_of({&there.global, &there.factors}));
    }
    return numbers;
  }
  void bring_home(ServerState& state) override { rounds_->bring_home(state); }
  // Where ranks share clients out, stores add their sums up.
  std::optional<FactorGap> factor_gap(const ServerState& state, const Phase& phase) override {
    if (ranks_ != nullptr) return {};
    return cuda_factor_gap(state, phase, population_, sites_);
  }
  bool all_stop(bool wished) override {
    return ranks_ == nullptr ? wished : any_wishes(*ranks_, wished);
  }

  Metrics evaluate(const ServerState& state, bool last) override {
    const DeviceServerState& there = rounds_->on_gpu(state);
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
  std::unique_ptr<ExecutorOf<DeviceVector>> executor(const Population& population) {
    if (ranks_ == nullptr) {
      return std::make_unique<CudaExecutor>(population, *inference_, &sites_);
    }
    const auto cost = [this](const ClientInfo& client) {
      return visit_cost(recipe_.client, client);
    };
    return make_cuda_rank_executor(
        {.population = population, .ranks = *ranks_, .sites = *all_sites_, .cost = cost},
        *inference_, sites_);
  }

  DeviceSites sites_;  // this process's
  std::unique_ptr<CudaInference> inference_;
  Recipe recipe_;
  const Population& population_;
  Ranks* ranks_;                        // null: nobody plays along
  std::optional<RankSites> all_sites_;  // of all ranks
  CudaEvaluation evaluation_;
  std::optional<CudaEvaluation> calibration_;
  StateScores scores_;  // of the latest evaluate()
  std::optional<CudaRounds> rounds_;
};

}  // namespace

std::string cuda_problem() { return device_problem(); }

std::string cuda_text(const PlaceOptions& options) {
  return fmt::format("cuda {} ({})", device_name(),
                     options.precision == ProductPrecision::tf32 ? "tf32" : "float32");
}

Processor cuda_processor() {
  return {.kind = fmt::format("{}, {}", device_name(), device_software()),
          .name = device_address()};
}

// Ranks of one machine take its GPUs in turn.
void claim_cuda_of_rank() {
  const std::size_t gpus = device_count();
  if (gpus == 0) return;
  use_device(local_rank_of([](const char* name) -> const char* { return std::getenv(name); }) %
             gpus);
}

std::string cuda_ranks_problem() {
  if (const std::string why = mpi_ranks_problem(); !why.empty()) return why;
  return device_problem();
}

std::string cuda_ranks_text(const PlaceOptions& options) {
  const std::size_t ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  return fmt::format("{}, {} rank{}", cuda_text(options), ranks, ranks == 1 ? "" : "s");
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
  PlaceOptions alone = options;
  alone.ranks = nullptr;
  return std::make_unique<CudaPlace>(recipe, task, *task.data(), home, alone);
}

std::unique_ptr<Place> make_cuda_ranks_place(const Recipe& recipe, Task& task, SiteStore& home,
                                             const PlaceOptions& options) {
  check_cuda_place(recipe, task);
  check_has_ranks("mpi_cuda", options);
  return std::make_unique<CudaPlace>(recipe, task, *task.data(), home, options);
}

}  // namespace fedep
