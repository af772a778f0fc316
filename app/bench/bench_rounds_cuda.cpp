#include <chrono>

#include "app/bench/bench_rounds.h"
#include "fedep/cuda/device/device_gauge.h"
#include "fedep/inference/method.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/sim/gpu/cuda_cohort.h"
#include "fedep/sim/gpu/cuda_evaluation.h"
#include "fedep/sim/gpu/cuda_round.h"

namespace fedep {
namespace {

// The host's clock, when the GPU has done all it was given.
double now() {
  wait_for_device();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RoundTimes bench_rounds_on_gpu(const Dataset& data, const BenchPlan& plan) {
  if (const std::string why = device_problem(); !why.empty()) throw InputError(why);
  const Recipe& recipe = plan.recipe;
  const ProductPrecision precision = plan.precision;
  RoundTimes times{.device = device_name()};
  times.copy_rate = measured_copy_rate();
  times.product_rate = nominal_tf32_rate();
  reset_peak_device_memory();
  const Population population = make_population(data.clients());
  const std::vector<Phase> phases =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; });
  const Phase& phase = phases.back();
  times.clients = phase.clients_per_round;
  const auto model = make_model(recipe.model, data.info());
  HostVector<float> initial(model->size());
  model->initialise(recipe.seed, initial.span());
  const auto home = make_memory_store();
  DeviceSites sites(*home);
  const auto inference = make_cuda_inference(data, recipe, precision);
  CudaRounds rounds(recipe.seed, population, *inference, &sites);
  std::unique_ptr<CudaEvaluation> evaluation;
  if (plan.evaluate) evaluation = std::make_unique<CudaEvaluation>(data, recipe, precision);
  ServerState state = begin_phase(initial_server_state(recipe.server, std::move(initial)), phase,
                                  std::int64_t(phases.size()) - 1, population);
  for (int round = -plan.warm_up; round < plan.rounds; ++round) {
    const double start = now();
    const RoundNumbers numbers = rounds.play(state, phase);
    const double played = now();
    if (evaluation) evaluation->at(rounds.point(state));
    const double end = now();
    if (round < 0) continue;
    const double training = inference->training_seconds();
    ++times.rounds;
    times.steps += numbers.steps;
    times.training += training;
    times.other += played - start - training;
    times.evaluation += end - played;
    times.evaluations += evaluation != nullptr;
  }
  times.peak_memory = peak_device_memory();
  return times;
}

}  // namespace fedep
