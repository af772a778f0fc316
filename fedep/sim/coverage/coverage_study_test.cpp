// Linear regression with known noise and a full covariance: the posterior is exact, and so its intervals
// hold exactly what they say.
#include "fedep/sim/coverage/coverage_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/message/error.h"
#include "fedep/sim/learning_task.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Recipe regression_recipe() {
  Recipe recipe;
  recipe.data = {.name = "regression", .clients = 4, .dimension = 3, .examples = 12};
  recipe.model.noise = 0.7;
  recipe.server.clients_per_round = 4;
  recipe.server.prior = PriorSettings{.mean = 0.5, .precision = 2};
  recipe.server.damping.rule = DampingRule::none;
  recipe.phases = {{.algorithm = "fed_ep", .rounds = 2, .factors = FactorStart::flat}};
  recipe.phases[0].inference = InferenceSettings{.name = "laplace", .family = FamilyChoice::full};
  return resolved(recipe);
}

CoverageStudy study(const Recipe& recipe, CoverageOptions options = {}) {
  return run_coverage_study(recipe, *open_task_data(recipe, ""), options);
}

std::string doubts_of(const CoverageStudy& found) {
  std::string out;
  for (const std::string& doubt :
       coverage_doubts(interval_coverage(found.replicates), found.names)) {
    out += doubt + "\n";
  }
  return out;
}

TEST(CoverageStudy, ExactPosteriorsHaveIntervalsThatHoldAndUniformRanks) {
  const CoverageStudy found = study(regression_recipe(), {.replicates = 1000});
  EXPECT_EQ(found.names, (std::vector<std::string>{"x1", "x2", "x3", "intercept"}));
  EXPECT_EQ(found.replicates.size(), 1000u);
  EXPECT_EQ(found.failed, 0u);
  EXPECT_THAT(doubts_of(found), IsEmpty());
  const IntervalCoverage numbers = interval_coverage(found.replicates);
  EXPECT_NEAR(numbers.all.deviation_ratio.value, 1, 0.04);
  EXPECT_NEAR(numbers.all.covered[2].value, 0.95, 0.012);
}

TEST(CoverageStudy, AWrongPriorIsCaught) {
  EXPECT_THAT(doubts_of(study(regression_recipe(), {.replicates = 200, .truth_precision = 0.1})),
              HasSubstr("too narrow"));
  Recipe decayed = regression_recipe();  // a second prior in every client's likelihood
  decayed.client.weight_decay = 0.5;
  EXPECT_THAT(doubts_of(study(decayed, {.replicates = 200})), HasSubstr("ranks of truths"));
}

// Data counted twice: halved variances.
TEST(CoverageStudy, DataThatCountTwiceAreCaught) {
  Recipe twice = regression_recipe();
  twice.phases[0].cavity = CavityKind::whole;
  EXPECT_THAT(doubts_of(study(twice, {.replicates = 200})), HasSubstr("too narrow"));
}

// A diagonal run with a last round of curvature: its intervals are the curvature's, at the mean that rounds
// came to.
TEST(CoverageStudy, ALastRoundOfCurvatureIsWhatIsTried) {
  Recipe diagonal = regression_recipe();
  diagonal.client = {.epochs = 200, .batch = 1000};
  diagonal.client.optimizer = {.lr = 0.05, .momentum = 0.5};
  diagonal.phases[0].rounds = 10;
  diagonal.server.damping = {.rule = DampingRule::constant, .constant = 0.5};
  diagonal.phases[0].inference =
      InferenceSettings{.name = "laplace", .family = FamilyChoice::diagonal, .epochs = 20};
  diagonal.phases[0].curvature = CurvatureChoice::full;
  const CoverageStudy full = study(regression_recipe(), {.replicates = 4});
  const CoverageStudy last = study(resolved(diagonal), {.replicates = 4});
  ASSERT_EQ(last.replicates.size(), 4u) << last.first_failure;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(last.replicates[r][j].truth, full.replicates[r][j].truth);
      EXPECT_NEAR(last.replicates[r][j].deviation / full.replicates[r][j].deviation, 1, 1e-4);
    }
  }
}

// Truths of log tau and log sigma are drawn from their priors, and intercepts of clients' own from N(m, tau²).
TEST(CoverageStudy, InterceptsOfTheirOwnAndEstimatedNoiseAreTriedToo) {
  Recipe recipe = regression_recipe();
  recipe.data.clients = 8;
  recipe.server.clients_per_round = 8;
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0.5};
  recipe.phases[0].inference = InferenceSettings{};
  recipe.phases[0].rounds = 12;
  Recipe noise = recipe, site = recipe;
  noise.model.estimate_noise = true;
  site.model.site_intercept = true;
  for (const auto& [with, name] : {std::pair{noise, "log_noise"}, std::pair{site, "log_site_sd"}}) {
    const CoverageStudy found = study(resolved(with), {.replicates = 100});
    ASSERT_EQ(found.replicates.size(), 100u) << found.first_failure;
    EXPECT_EQ(found.names, (std::vector<std::string>{"x1", "x2", "x3", "intercept", name}));
    EXPECT_THAT(doubts_of(found), IsEmpty());
    // Truths differ from replicate to replicate, and q has learned of them.
    EXPECT_NE(found.replicates[0][4].truth, found.replicates[1][4].truth);
    EXPECT_LT(found.replicates[0][4].deviation, 0.8);
  }
}

TEST(CoverageStudy, AReplicateDependsOnItsNumberAlone) {
  const auto bits = [](const CoverageStudy& found) {
    std::vector<double> out;
    for (const Replicate& one : found.replicates) {
      for (const KnownTruth& known : one) {
        out.insert(out.end(), {known.truth, known.mean, known.deviation, double(known.rank)});
      }
    }
    return out;
  };
  const std::vector<double> many = bits(study(regression_recipe(), {.replicates = 12}));
  EXPECT_EQ(bits(study(regression_recipe(), {.replicates = 12, .threads = 3})), many);
  const std::vector<double> few = bits(study(regression_recipe(), {.replicates = 5}));
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  Recipe other = regression_recipe();
  other.seed = 2;  // other rows too, as these are made up
  EXPECT_NE(bits(study(other, {.replicates = 12})), many);
}

TEST(CoverageStudy, ReplicatesWithoutAPosteriorAreCounted) {
  Recipe huge = regression_recipe();
  huge.phases[0].inference->name = "quadrature";
  huge.server.prior->mean = 3e38;  // outcomes that no float holds
  const CoverageStudy found = study(huge, {.replicates = 3});
  EXPECT_EQ(found.failed, 3u);
  EXPECT_THAT(found.first_failure, Not(IsEmpty()));
}

TEST(CoverageStudy, WhatCannotBeTriedIsRefused) {
  const auto refusal = [](const Recipe& recipe) {
    try {
      study(recipe, {.replicates = 2});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Recipe flat = regression_recipe();
  flat.server.prior.reset();
  EXPECT_THAT(refusal(flat), HasSubstr("server.prior must be proper"));
  Recipe average = regression_recipe();
  average.phases = {{.algorithm = "fed_avg", .rounds = 1}};
  EXPECT_THAT(refusal(average), HasSubstr("fed_avg has an estimate alone"));
  Recipe set = regression_recipe();
  set.phases[0].inference = InferenceSettings{.name = "scaled_identity"};
  EXPECT_THAT(refusal(set), HasSubstr("scaled_identity sets its precision"));
  Recipe classes = regression_recipe();
  classes.data = {.name = "synthetic", .clients = 3, .dimension = 4, .examples = 10};
  EXPECT_THAT(refusal(classes), HasSubstr("yes or no, a number or a count"));
  EXPECT_THROW(study(regression_recipe(), {.replicates = 2, .truth_precision = -1}), InputError);
}

}  // namespace
}  // namespace fedep
