#include "fedep/sim/prior_pull.h"

#include <fmt/format.h>

#include "fedep/sim/chain.h"

namespace fedep {
namespace {

// Precision of a client's cavity in the phase's first round, over its examples.
double first_pull(const Phase& phase, double prior, const Population& population,
                  std::size_t client) {
  const double all = double(population.examples()), own = double(population[client].examples);
  const double of_factors = phase.factors == FactorStart::flat ? 0 : phase.alpha * all;
  double kept = 1;
  switch (phase.cavity) {
    case CavityKind::flat:
      return 0;
    case CavityKind::whole:
      break;
    case CavityKind::own_factor:
      kept = 1 - own / all;
      break;
    case CavityKind::share:
      kept = 1 - (phase.share == ShareRule::examples ? own / all : 1 / double(population.size()));
      break;
  }
  return (prior + kept * of_factors) / own;
}

}  // namespace

std::vector<StrongPull> strong_pulls(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Population& population) {
  std::vector<StrongPull> found;
  const OptimizerSettings& optimizer = recipe.client.optimizer;
  if (optimizer.name != "sgd") return found;  // others set the length of their steps themselves
  const double prior = recipe.server.prior ? recipe.server.prior->precision : 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    const bool makes_no_steps = phase.inference.name.starts_with("exact");
    if (phase.algorithm->needs != Needs::tilted || makes_no_steps) continue;
    StrongPull strongest;
    strongest.phase = i;
    strongest.algorithm = phase.algorithm->name;
    strongest.most = 2 * (1 + optimizer.momentum) / optimizer.lr;
    for (std::size_t c = 0; c < population.size(); ++c) {
      const std::size_t examples = population[c].examples;
      if (!makes_steps(recipe.client, phase.algorithm->pools_epochs, examples)) continue;
      const double pull = first_pull(phase, prior, population, c);
      strongest.clients += pull > strongest.most;
      if (pull <= strongest.pull) continue;
      strongest.pull = pull;
      strongest.client = population[c].id;
      strongest.examples = examples;
    }
    if (strongest.clients > 0) found.push_back(strongest);
  }
  return found;
}

std::string to_text(const StrongPull& pull) {
  return fmt::format(
      "phase.{} ({}): steps of {} clients will diverge, because others' precision over their own "
      "examples ({:.4g} for client {} with {}) is more than the {:.4g} that client.optimizer's lr "
      "and momentum bear: docs/stability.md",
      pull.phase, pull.algorithm, pull.clients, pull.pull, pull.client, pull.examples, pull.most);
}

}  // namespace fedep
