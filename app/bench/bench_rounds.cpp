#include "app/bench/bench_rounds.h"

#include <chrono>

#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/evaluation.h"
#include "fedep/sim/serial.h"

namespace fedep {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Timed final : public LocalInference {
 public:
  explicit Timed(LocalInference& inner) : inner_(inner) {}

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const double start = now();
    ClientRun run = inner_.infer(visit, numbers);
    seconds += now() - start;
    return run;
  }

  double seconds = 0;

 private:
  LocalInference& inner_;
};

}  // namespace

RoundTimes bench_rounds_on_cpu(const Dataset& data, const BenchPlan& plan) {
  const Recipe& recipe = plan.recipe;
  const Population population = make_population(data.clients());
  ClientIndex index;
  for (std::size_t i = 0; i < population.size(); ++i) index[population[i].key] = i;
  const std::vector<Phase> phases =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; });
  const Phase& phase = phases.back();
  const auto model = make_model(recipe.model, data.info());
  HostVector<float> initial(model->size());
  model->initialise(recipe.seed, initial.span());
  const auto sites = make_memory_store();
  const auto inference =
      make_local_learning(data, index, recipe, make_model(recipe.model, data.info()));
  Timed timed(*inference);
  const auto executor = make_serial(population, timed, sites.get());
  ServerState state = begin_phase(initial_server_state(recipe.server, std::move(initial)), phase,
                                  std::int64_t(phases.size()) - 1, population);
  RoundTimes times{.device = "cpu, one core", .clients = phase.clients_per_round};
  for (int round = -plan.warm_up; round < plan.rounds; ++round) {
    timed.seconds = 0;
    const double start = now();
    const RoundNumbers numbers = play_round(state, phase, recipe.seed, population, *executor);
    const double seconds = now() - start;
    if (round < 0) continue;
    ++times.rounds;
    times.steps += numbers.steps;
    times.training += timed.seconds;
    times.other += seconds - timed.seconds;
  }
  if (plan.evaluate) {
    Evaluation evaluation(data, make_model(recipe.model, data.info()));
    const double start = now();
    evaluation.at(point_estimate(state));
    times.evaluation = now() - start;
    times.evaluations = 1;
  }
  return times;
}

}  // namespace fedep
