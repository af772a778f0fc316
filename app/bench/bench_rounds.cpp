#include "app/bench/bench_rounds.h"

#include <chrono>
#include <memory>
#include <vector>

#include "fedep/sim/family_choice.h"

namespace fedep {
namespace {

// The host's clock, when all that the place was given is done.
double now(Place& place) {
  place.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RoundTimes bench_rounds(const BenchPlan& plan, Task& task, const PlaceRow& where,
                        const PlaceOptions& options) {
  Recipe recipe = decide_families(plan.recipe, task).recipe;
  recipe.evaluate.samples = 0;  // the point's scores alone
  const std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  const Phase& phase = phases.back();
  const std::unique_ptr<SiteStore> home = make_memory_store();
  const std::unique_ptr<Place> place = where.make(recipe, task, *home, options);
  ServerState state =
      begin_phase(initial_server_state(recipe.server, task.initial_weights(), task.priors()), phase,
                  std::int64_t(phases.size()) - 1, task.population());
  RoundTimes times{.gauge = {}, .clients = phase.clients_per_round};
  for (int round = -plan.warm_up; round < plan.rounds; ++round) {
    const double start = now(*place);
    const RoundNumbers numbers = place->play(state, phase);
    const double played = now(*place);
    // On a core, scores may take longer than all rounds; elsewhere the first ones warm up too.
    const bool scores = plan.evaluate && (where.own_memory || round + 1 == plan.rounds);
    if (scores) place->evaluate(state, false);
    const double end = now(*place);
    if (round < 0) continue;
    const double training = place->training_seconds();
    ++times.rounds;
    times.steps += numbers.steps;
    times.training += training;
    times.other += played - start - training;
    times.evaluation += end - played;
    times.evaluations += scores;
  }
  times.gauge = place->gauge();
  return times;
}

}  // namespace fedep
