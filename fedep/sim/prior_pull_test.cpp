#include "fedep/sim/prior_pull.h"

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"

namespace fedep {
namespace {

// FedAvg, then what the test says; lr and momentum bear 2 (1 + 0.9) / 0.01 = 380.
Recipe recipe_of(const std::string& phase, const std::string& client = "") {
  return parse_recipe(R"(
[data]
name = "synthetic"
[client]
batch = 20
optimizer = { name = "sgd", lr = 0.01, momentum = 0.9 }
)" + client + R"(
[[phase]]
algorithm = "fed_avg"
rounds = 1
[[phase]]
rounds = 1
)" + phase);
}

std::string sep_of(double alpha, const std::string& more = "") {
  return "algorithm = \"fed_sep\"\n" + more +
         "[phase.inference]\nname = \"scaled_identity\"\nalpha = " + std::to_string(alpha) + "\n";
}

std::vector<StrongPull> pulls_of(const Recipe& recipe, const Population& population,
                                 double own = 0) {
  return strong_pulls(recipe,
                      plan_phases(recipe, [](std::string_view) { return Family::isotropic; }),
                      population, own);
}

const Population kWriters = make_population({{"a", 25}, {"b", 100}, {"c", 375}});

// α (N - N_k) / N_k = 19 α for client a: 380 at α = 20.
TEST(StrongPull, BeginsWhereThePriorAloneDiverges) {
  EXPECT_TRUE(pulls_of(recipe_of(sep_of(19.9)), kWriters).empty());
  const std::vector<StrongPull> pulls = pulls_of(recipe_of(sep_of(20.1)), kWriters);
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_EQ(pulls[0].phase, 1u);
  EXPECT_EQ(pulls[0].clients, 1u);
  EXPECT_EQ(pulls[0].client, "a");
  EXPECT_EQ(pulls[0].examples, 25u);
  EXPECT_DOUBLE_EQ(pulls[0].most, 380);
  EXPECT_NEAR(pulls[0].pull, 19 * 20.1, 1e-6);
  EXPECT_EQ(pulls_of(recipe_of(sep_of(96)), kWriters)[0].clients, 2u);  // b bears α = 95
  EXPECT_NE(to_text(pulls[0]).find("client a with 25"), std::string::npos);
}

TEST(StrongPull, IsMuItselfInFedProxAndGrowsWithPenaltyAndTemperature) {
  EXPECT_TRUE(pulls_of(recipe_of("algorithm = \"fed_prox\"\nmu = 379\n"), kWriters).empty());
  const auto pulls = pulls_of(recipe_of("algorithm = \"fed_prox\"\nmu = 381\n"), kWriters);
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_EQ(pulls[0].clients, 3u);
  EXPECT_NEAR(pulls_of(recipe_of(sep_of(20, "temperature = 2\n")), kWriters)[0].pull, 760, 1e-6);
}

TEST(StrongPull, IsNotFeltByClientsWithoutSteps) {
  const Recipe keep = recipe_of(sep_of(20.1));
  const Recipe drop = recipe_of(sep_of(20.1), "remainder = \"drop\"\n");
  const Population few = make_population({{"a", 19}, {"b", 481}});
  EXPECT_EQ(pulls_of(keep, few).size(), 1u);
  EXPECT_TRUE(pulls_of(drop, few).empty());
}

TEST(StrongPull, IsThatOfTheCavity) {
  const auto pull = [](const std::string& more) {
    const auto pulls = pulls_of(recipe_of(sep_of(1000, more)), kWriters);
    return pulls.empty() ? 0.0 : pulls[0].pull;
  };
  EXPECT_NEAR(pull(""), 19000, 1e-6);
  EXPECT_NEAR(pull("cavity = \"own_factor\"\n"), 19000, 1e-6);
  EXPECT_NEAR(pull("cavity = \"whole\"\n"), 20000, 1e-6);
  EXPECT_NEAR(pull("share = \"equal\"\n"), 20000 * 2.0 / 3, 1e-6);
  EXPECT_EQ(pull("cavity = \"flat\"\n"), 0);
  EXPECT_EQ(pull("factors = \"flat\"\n"), 0);
}

TEST(StrongPull, OfThePriorCountsToo) {
  Recipe recipe = recipe_of(sep_of(1, "factors = \"flat\"\n"));
  recipe.server.prior = PriorSettings{.precision = 1e4};
  ASSERT_EQ(pulls_of(recipe, kWriters).size(), 1u);
  EXPECT_DOUBLE_EQ(pulls_of(recipe, kWriters)[0].pull, 400);
}

// Of the 380 that steps bear, 100 are then taken: 19 α for client a reaches the rest at α = 14.7.
TEST(StrongPull, AddsToTheLossesOwnCurvature) {
  EXPECT_TRUE(pulls_of(recipe_of(sep_of(14.7)), kWriters, 100).empty());
  const std::vector<StrongPull> pulls = pulls_of(recipe_of(sep_of(14.8)), kWriters, 100);
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_NE(to_text(pulls[0]).find("1/model.noise² = 100) are together more than the 380"),
            std::string::npos);
}

TEST(StrongPull, OfTheLossAloneIsThereInEveryPhase) {
  EXPECT_TRUE(pulls_of(recipe_of(sep_of(1e-3)), kWriters, 379).empty());
  const std::vector<StrongPull> pulls = pulls_of(recipe_of(sep_of(1e-3)), kWriters, 381);
  ASSERT_EQ(pulls.size(), 2u);
  EXPECT_EQ(pulls[0].algorithm, "fed_avg");
  EXPECT_EQ(pulls[0].clients, 3u);
  EXPECT_NE(to_text(pulls[0]).find("because their loss's own curvature (1/model.noise² = 381) is"),
            std::string::npos);
}

TEST(StrongPull, KnowsTheCurvatureOfALinearModelOfNumbersAlone) {
  const ModelSettings linear{.name = "linear", .noise = 0.5};
  DatasetInfo data;
  data.target = TargetKind::real;
  EXPECT_EQ(least_curvature(linear, data), 4);
  EXPECT_EQ(least_curvature({.name = "torchscript", .noise = 0.5}, data), 0);
  data.target = TargetKind::binary;
  EXPECT_EQ(least_curvature(linear, data), 0);
}

}  // namespace
}  // namespace fedep
