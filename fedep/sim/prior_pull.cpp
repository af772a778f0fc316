#include "fedep/sim/prior_pull.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/model/registry.h"
#include "fedep/sim/chain/chain.h"

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
    case CavityKind::proximal:
    case CavityKind::dual:
      return phase.mu;
    case CavityKind::whole:
      break;
    case CavityKind::own_factor:
      kept = 1 - own / all;
      break;
    case CavityKind::share:
      kept = 1 - (phase.share == ShareRule::examples ? own / all : 1 / double(population.size()));
      break;
  }
  return (prior + kept * of_factors) / own / phase.likelihood_power();
}

}  // namespace

double least_curvature(const ModelSettings& model, const DatasetInfo& data) {
  if (!find_model(model.name).is_linear || data.target != TargetKind::real) return 0;
  return 1 / (model.noise * model.noise);
}

std::vector<StrongPull> strong_pulls(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Population& population, double own,
                                     std::span<const CoordinatePrior> priors) {
  std::vector<StrongPull> found;
  const OptimizerSettings& optimizer = recipe.client.optimizer;
  double prior = recipe.server.prior ? recipe.server.prior->precision : 0;
  for (const CoordinatePrior& one : priors) prior = std::max(prior, one.precision);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (phase.family == Family::full) continue;  // no chain makes steps
    const bool hears_others = phase.algorithm->needs == Needs::tilted || phase.mu > 0;
    StrongPull strongest;
    strongest.phase = i;
    strongest.algorithm = phase.algorithm->name;
    strongest.own = own;
    strongest.most = 2 * (1 + optimizer.momentum) / optimizer.lr;
    for (std::size_t c = 0; c < population.size(); ++c) {
      const std::size_t examples = population[c].examples;
      if (!makes_steps(recipe.client, phase.algorithm->pools_epochs, examples)) continue;
      const double pull = hears_others ? first_pull(phase, prior, population, c) : 0;
      strongest.clients += pull + own > strongest.most;
      if (pull < strongest.pull || (pull == strongest.pull && !strongest.client.empty())) continue;
      strongest.pull = pull;
      strongest.client = population[c].id;
      strongest.examples = examples;
    }
    if (strongest.clients > 0) found.push_back(strongest);
  }
  return found;
}

std::string to_text(const StrongPull& pull) {
  const std::string others =
      fmt::format("others' precision over their own examples ({:.4g} for client {} with {})",
                  pull.pull, pull.client, pull.examples);
  const std::string own =
      fmt::format("their loss's own curvature (1/model.noise² = {:.4g})", pull.own);
  const std::string why = pull.own == 0    ? others + " is"
                          : pull.pull == 0 ? own + " is"
                                           : others + " and " + own + " are together";
  return fmt::format(
      "phase.{} ({}): steps of {} clients will diverge, because {} more than the {:.4g} that "
      "client.optimizer's lr and momentum bear: docs/stability.md",
      pull.phase, pull.algorithm, pull.clients, why, pull.most);
}

}  // namespace fedep
