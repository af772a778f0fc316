#include "fedep/round/algorithm_rules.h"

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/round/server_state.h"

namespace fedep {
namespace {

Recipe recipe_of(std::string_view algorithm, std::string_view method = "") {
  Recipe recipe;
  recipe.data.name = "synthetic";
  recipe.server.prior.emplace();
  recipe.phases.push_back({.algorithm = std::string(algorithm), .rounds = 3});
  if (!method.empty()) recipe.phases[0].inference = InferenceSettings{.name = std::string(method)};
  return recipe;
}

std::string refusal(const Recipe& recipe) {
  try {
    (void)plan_phases(recipe, [](std::string_view) { return Family::diagonal; });
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Phase planned(const Recipe& recipe) {
  return plan_phases(recipe, [](std::string_view) { return Family::diagonal; })[0];
}

TEST(AlgorithmRules, EveryAlgorithmHasSettingsWithWhichItRuns) {
  for (const Algorithm& algorithm : algorithms()) {
    const std::string_view any = algorithm.needs == Needs::tilted ? "laplace" : "";
    Recipe recipe =
        recipe_of(algorithm.name, algorithm.methods[0].empty() ? any : algorithm.methods[0]);
    if (algorithm.cavity == CavityKind::proximal || algorithm.cavity == CavityKind::dual) {
      EXPECT_EQ(refusal(recipe),
                fmt::format("phase.0.mu is missing: {} needs one", algorithm.name));
      recipe.phases[0].mu = 0.1;
    }
    EXPECT_EQ(refusal(recipe), "") << algorithm.name;
  }
}

TEST(AlgorithmRules, KeysOfOthersAreRefused) {
  Recipe recipe = recipe_of("fed_ep", "laplace");
  recipe.phases[0].mu = 0.1;
  EXPECT_EQ(refusal(recipe), "phase.0.mu is given, but fed_ep has none");
  recipe = recipe_of("pvi", "ngvi");
  recipe.phases[0].penalty = 1;
  EXPECT_EQ(refusal(recipe), "phase.0.penalty is given, but pvi has none");
  recipe = recipe_of("fed_avg");
  recipe.phases[0].temperature = 2;
  EXPECT_EQ(refusal(recipe), "phase.0.temperature is given, but fed_avg has none");
  recipe = recipe_of("fed_prox");
  recipe.phases[0].mu = 0.1;
  recipe.phases[0].dual_rate = 0.5;
  EXPECT_EQ(refusal(recipe), "phase.0.dual_rate is given, but fed_prox has none");
  recipe = recipe_of("bayes_admm", "laplace");
  recipe.phases[0].damping.emplace();
  EXPECT_EQ(refusal(recipe), "phase.0.damping is given, but bayes_admm has none");
}

TEST(AlgorithmRules, CavitiesOfPointEstimatesAreTheirs) {
  Recipe recipe = recipe_of("fed_avg");
  recipe.phases[0].cavity = CavityKind::proximal;
  EXPECT_EQ(refusal(recipe),
            "phase.0.cavity can be proximal with fed_prox and dual with fed_dyn alone");
  recipe = recipe_of("fed_prox");
  recipe.phases[0].mu = 0.1;
  recipe.phases[0].cavity = CavityKind::flat;
  EXPECT_EQ(refusal(recipe),
            "phase.0.cavity must be the one that makes it FedProx, but is another");
  recipe = recipe_of("bayes_admm", "laplace");
  recipe.phases[0].cavity = CavityKind::share;
  EXPECT_NE(refusal(recipe).find("own_factor with bayes_admm"), std::string::npos);
}

TEST(AlgorithmRules, WhatHasNoOptimizerHasNone) {
  for (const char* algorithm : {"pvi", "fed_lap_cov"}) {
    Recipe recipe = recipe_of(algorithm, algorithm == std::string("pvi") ? "ngvi" : "laplace");
    recipe.server.optimizer.momentum = 0.9;
    EXPECT_EQ(refusal(recipe).find("server.optimizer must be sgd with lr 1 and no momentum"), 0u);
    recipe.phases[0].optimizer.emplace();
    EXPECT_EQ(refusal(recipe), "");
    recipe.phases[0].optimizer->lr = 0.5;
    EXPECT_EQ(refusal(recipe).find("phase.0.optimizer must be sgd"), 0u);
    recipe.phases[0].optimizer.reset();
    recipe.server.optimizer = {};
    recipe.server.factor_optimizer = OptimizerSettings{.lr = 0.1};
    EXPECT_EQ(refusal(recipe).find("server.factor_optimizer must be sgd"), 0u);
  }
}

TEST(AlgorithmRules, MethodsAndPriorsAreThoseOfTheName) {
  EXPECT_EQ(refusal(recipe_of("pvi", "laplace")),
            "phase.0.inference.name must be ngvi or ivon with pvi, but is laplace");
  EXPECT_EQ(refusal(recipe_of("fed_lap", "laplace")),
            "phase.0.inference.name must be map with fed_lap, but is laplace");
  Recipe recipe = recipe_of("pvi", "ngvi");
  recipe.server.prior.reset();
  EXPECT_EQ(refusal(recipe), "server.prior is flat, but pvi needs one: prior = { precision = … }");
}

TEST(AlgorithmRules, AdmmIsDampedByItsDualsRateTimesItsPenalty) {
  Recipe recipe = recipe_of("bayes_admm", "laplace");
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0.01, .outside = true};
  recipe.phases[0].penalty = 0.5;
  recipe.phases[0].dual_rate = 0.3;
  const Phase phase = planned(recipe);
  EXPECT_EQ(phase.damping.rule, DampingRule::constant);
  EXPECT_DOUBLE_EQ(phase.damping.constant, 0.15);
  EXPECT_FALSE(phase.damping.outside);
  EXPECT_DOUBLE_EQ(phase.likelihood_power(), 2);
}

TEST(AlgorithmRules, FedLapBeginsWithThePriorsPrecisionAtTheMeanItIsGiven) {
  Recipe recipe = recipe_of("fed_lap", "map");
  recipe.phases[0].factors = FactorStart::carry_mean;
  const Phase phase = planned(recipe);
  EXPECT_EQ(phase.alpha, 0);
  const Population population = make_population({{"a", 10}, {"b", 30}});
  const ServerState state = begin_phase(
      initial_server_state(recipe.server, HostVector<float>{1, -2}), phase, 0, population);
  EXPECT_EQ(mean(state.global), (HostVector<float>{1, -2}));
  EXPECT_EQ(state.global.lambda_span()[0], float(recipe.server.prior->precision));
}

}  // namespace
}  // namespace fedep
