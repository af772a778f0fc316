// A recipe for small models of a few clients, made up for tests: with what the paper's runs have
// switched on, so that momentum, weight decay, shrinkage and clipping all take part.
//
//   Recipe recipe = recipe_for("cnn", "fed_ep", "laplace");
//   recipe.client.epochs = 2;
#pragma once

#include <string>
#include <string_view>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/recipe.h"
#include "fedep/config/resolve.h"

namespace fedep {

// Three rounds of one phase, resolved; without a method the phase has no inference.
inline Recipe recipe_for(const std::string& model, std::string_view algorithm,
                         std::string_view method) {
  Recipe recipe;
  recipe.data.name = "synthetic";
  recipe.model = {.name = model};
  recipe.client = {.epochs = 3, .batch = 4};
  recipe.client.optimizer = {.lr = 0.01, .momentum = 0.9};
  recipe.client.weight_decay = 1e-3;
  recipe.server.clients_per_round = 5;
  recipe.server.optimizer = {.lr = 0.5, .momentum = 0.9};
  PhaseSettings phase{.algorithm = std::string(algorithm), .rounds = 3};
  InferenceSettings inference{.name = std::string(method), .alpha = 0.5};
  inference.shrinkage = 1e-3;
  inference.epochs = 2;
  inference.samples = 2;
  inference.initial_scale = 0.5;
  inference.clip_std = 2;
  if (!method.empty()) phase.inference = inference;
  const Algorithm& row = find_algorithm(algorithm);
  if (row.plain_steps) phase.optimizer.emplace();
  if (row.needs_prior) recipe.server.prior.emplace();
  if (row.cavity == CavityKind::proximal || row.cavity == CavityKind::dual) phase.mu = 0.1;
  if (row.step == StepRule::admm) phase.dual_rate = 0.5;
  if (row.step == StepRule::admm && !row.point_estimate) phase.penalty = 1.5;
  recipe.phases.push_back(phase);
  return resolved(recipe);
}

}  // namespace fedep
