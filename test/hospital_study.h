// Recipes played in memory on a data set at hand, and what hospitals get out of them: a posterior
// over coefficients, scores on held-out rows, and what each hospital would have without the others.
//
//   const Recipe recipe = read_recipe("recipe/heart_disease/ep.toml");
//   const auto data = open_dataset(recipe.data, recipe.seed, data_folder);
//   const ServerState together = play_recipe(recipe, *data);
//   const ServerState alone = play_recipe(recipe, *only_client(*data, 0));
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/score/evaluation.h"
#include "test/pooled_posterior.h"

namespace fedep {

// The state after the last round. Asks everybody where the recipe asks more clients than there are.
ServerState play_recipe(const Recipe& recipe, const Dataset& data);

// `data` with one of its clients in training; held-out rows stay all of them. Columns stay on the
// scale that all clients' sums gave. `data` must outlive the result.
std::unique_ptr<Dataset> only_client(const Dataset& data, std::size_t client);

// How far q is from the pooled posterior, coefficient by coefficient.
struct Agreement {
  std::vector<double> mean_distance;    // |mean - pooled mean| in pooled standard deviations
  std::vector<double> deviation_ratio;  // q's standard deviation over the pooled one

  double largest_distance() const;
  double smallest_ratio() const;
  double largest_ratio() const;
};
Agreement agreement(const Message& q, const PooledPosterior& pooled);

// auc, nll and ece of held-out rows where each client's are predicted with its own weights, in the
// order of data.clients().
Metrics scores_of_own_models(const Dataset& data, const ModelSettings& model,
                             const std::vector<HostVector<float>>& weights);

// Throws std::out_of_range where there is none.
double metric(const Metrics& metrics, std::string_view name);

}  // namespace fedep
