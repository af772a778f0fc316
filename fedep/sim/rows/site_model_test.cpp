// Recipes with hospitals' own intercepts and estimated noise: what is refused by its key, priors, and that
// families are decided.
#include "fedep/sim/rows/site_model.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/message/error.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/learning_task.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

Recipe recipe_with(bool intercept, bool noise) {
  Recipe recipe;
  recipe.data = {.name = "regression", .clients = 3, .dimension = 2, .examples = 20};
  recipe.model.site_intercept = intercept;
  recipe.model.estimate_noise = noise;
  recipe.server.clients_per_round = 3;
  recipe.server.prior = PriorSettings{};
  recipe.phases = {{.algorithm = "fed_ep", .rounds = 1, .factors = FactorStart::flat}};
  return resolved(recipe);
}

std::string refusal(const Recipe& recipe) {
  try {
    const auto task = make_task(recipe, "");
    decide_families(recipe, *task);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SiteModel, SharedParametersAreBehindTheWeights) {
  const auto task = make_task(recipe_with(true, true), "");
  const SharedExtras extras = extras_of(task->layout());
  EXPECT_EQ(extras.weights, 3u);
  EXPECT_EQ(extras.intercept(), 2u);
  EXPECT_EQ(extras.log_site_sd, 3u);
  EXPECT_EQ(extras.log_noise, 4u);
  EXPECT_EQ(task->layout()[2].name, "log_site_sd");
  EXPECT_EQ(task->layout()[3].name, "log_noise");
  const auto priors = task->priors();
  ASSERT_EQ(priors.size(), 2u);
  // A number's unit is its own: hospitals differ by some part of what outcomes do.
  const double deviation = outcome_moments(*task->data()).deviation;
  EXPECT_EQ(priors[0], (CoordinatePrior{3, std::log(0.5 * deviation), 1}));
  EXPECT_EQ(priors[1], (CoordinatePrior{4, std::log(deviation), 1}));
  EXPECT_EQ(task->initial_weights()[3], float(std::log(0.5 * deviation)));
  for (const TargetKind target : {TargetKind::binary, TargetKind::count}) {
    EXPECT_EQ(extra_priors({.weights = 3, .log_site_sd = 3}, target, 0),
              (std::vector<CoordinatePrior>{{3, std::log(0.5), 1}}));
  }
  EXPECT_EQ(make_task(recipe_with(false, false), "")->priors().size(), 0u);
}

std::string prior_refusal(const OutcomeMoments& outcome,
                          const std::vector<CoordinatePrior>& own = {}, double precision = 1) {
  Recipe recipe = recipe_with(true, true);
  recipe.server.prior->precision = precision;
  const SharedExtras extras = extras_of(make_task(recipe_with(true, true), "")->layout());
  try {
    check_outcome_prior(recipe, own, extras, outcome);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Blood pressures around 137 under an intercept of N(0, 1) had a noise of 128 and effects of nothing.
TEST(SiteModel, AnOutcomeThatItsPriorDoesNotReachIsRefusedWithWhatHelps) {
  const OutcomeMoments pressure{.rows = 1500, .mean = 137, .deviation = 18};
  EXPECT_THAT(prior_refusal(pressure), HasSubstr("137.0 deviations from the intercept's prior"));
  EXPECT_THAT(prior_refusal(pressure), HasSubstr("mean = 137 and precision = 0.0031"));
  EXPECT_EQ(prior_refusal(pressure, {{2, 137, 1 / 324.0}}, 1 / 324.0), "");
  EXPECT_EQ(prior_refusal({.rows = 1500, .mean = 2.9, .deviation = 1}), "");
  EXPECT_THAT(prior_refusal({.rows = 1500, .mean = -3.1, .deviation = 1}), HasSubstr("intercept"));
}

TEST(SiteModel, APriorThatCountsMoreThanAllRowsIsRefused) {
  const OutcomeMoments euros{.rows = 1500, .mean = 0, .deviation = 9000};
  EXPECT_THAT(prior_refusal(euros), HasSubstr("server.prior.precision to 1.2e-08 or less"));
  EXPECT_EQ(prior_refusal(euros, {}, 1.2e-8), "");
  // With many rows a tight prior does little.
  EXPECT_EQ(prior_refusal({.rows = 1500, .mean = 0, .deviation = 38}), "");
  EXPECT_THAT(prior_refusal({.rows = 1500, .mean = 0, .deviation = 39}), HasSubstr("all rows"));
}

TEST(SiteModel, TheOutcomesDeviationIsThatOfAllRowsTogether) {
  const auto data = open_task_data(recipe_with(false, true), "");
  double n = 0, sum = 0, squares = 0;
  for (std::size_t k = 0; k < data->clients().size(); ++k) {
    std::vector<std::uint32_t> all(data->clients()[k].second);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint32_t(i);
    Batch batch;
    data->train_batch(k, all, nullptr, batch);
    for (const float y : batch.reals) n += 1, sum += y, squares += double(y) * y;
  }
  EXPECT_NEAR(outcome_moments(*data).mean, sum / n, 1e-6);
  EXPECT_EQ(outcome_moments(*data).rows, n);
  EXPECT_NEAR(outcome_moments(*data).deviation, std::sqrt((squares - sum * sum / n) / (n - 1)),
              1e-5);
}

TEST(SiteModel, PhasesAreFullByQuadratureAndBackOff) {
  const Recipe recipe = recipe_with(true, true);
  const auto task = make_task(recipe, "");
  const Recipe decided = decide_families(recipe, *task).recipe;
  EXPECT_EQ(decided.phases[0].inference->family, FamilyChoice::full);
  EXPECT_EQ(decided.phases[0].inference->name, "quadrature");
  EXPECT_EQ(decided.phases[0].guard.mode, GuardMode::back_off);
  // A run that goes on has the same settings.
  EXPECT_EQ(decided_as_before(decided, recipe, decided), decided);
}

TEST(SiteModel, WhatDoesNotGoTogetherIsRefusedByItsKey) {
  Recipe recipe = recipe_with(true, false);
  EXPECT_EQ(refusal(recipe), "");
  recipe.server.prior.reset();
  EXPECT_THAT(refusal(recipe), HasSubstr("server.prior is flat"));
  recipe = recipe_with(true, false);
  recipe.phases[0].inference = InferenceSettings{.name = "laplace"};
  EXPECT_THAT(refusal(recipe), HasSubstr("it is laplace"));
  recipe.phases[0].inference = InferenceSettings{.family = FamilyChoice::diagonal};
  EXPECT_THAT(refusal(recipe), HasSubstr("family full"));
  recipe = recipe_with(true, false);
  recipe.phases[0].algorithm = "fed_avg";
  EXPECT_THAT(refusal(recipe), HasSubstr("phase.0.algorithm is fed_avg"));
  recipe = recipe_with(true, false);
  recipe.phases[0].curvature = CurvatureChoice::full;
  EXPECT_THAT(refusal(recipe), HasSubstr("curvature"));
  recipe = recipe_with(false, true);
  recipe.client.weight_decay = 0.1;
  EXPECT_THAT(refusal(recipe), HasSubstr("model.noise = \"estimated\" needs client.weight_decay"));
  recipe = recipe_with(false, true);
  recipe.server.optimizer.momentum = 0.5;
  EXPECT_THAT(refusal(recipe), HasSubstr("momentum"));
  recipe = recipe_with(true, false);
  recipe.data = {.name = "synthetic"};  // classes
  EXPECT_THAT(refusal(recipe), HasSubstr("model.site_intercept needs dense columns"));
  recipe = recipe_with(false, true);
  recipe.data = {.name = "synthetic"};
  EXPECT_THAT(refusal(recipe), HasSubstr("model.noise can be estimated where"));
}

}  // namespace
}  // namespace fedep
