// Draws of the tilted distribution: their moments are those of brute force, precisions are unbiased, and
// everything depends on the address alone.
#include "fedep/inference/rows/hmc.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/quadrature.h"
#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

Address address(std::uint64_t seed, std::string_view client = "ward") {
  return {.seed = seed, .purpose = Purpose::test, .client = client_key(client)};
}

TEST(Hmc, MomentsAreThoseOfABruteForceGrid) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    const GlmRows rows = random_rows({.outcome = outcome, .rows = 12, .columns = 2});
    const DenseGaussian<double> prior = normal_prior(2, 0.5);
    const GlmEnergy energy(prior, rows);
    const GlmTilted around = laplace_tilted(prior, rows);
    const Moments exact =
        grid_moments([&](const Eigen::VectorXd& theta) { return -energy.value(theta); },
                     around.mean, around.covariance, 9, 0.1);
    const HmcTilted came = hmc_tilted(
        prior, rows, {.effective_per_weight = 4000, .most_per_weight = 40000}, address(1));
    EXPECT_GE(came.effective, 8000);
    const Distance gap = distance(came.mean, came.covariance, exact);
    EXPECT_LT(gap.mean, 4 / std::sqrt(8000));
    EXPECT_LT(gap.log_deviation, 4 / std::sqrt(2 * 8000) + 0.01);
    EXPECT_NEAR(came.covariance(0, 1) / exact.covariance(0, 1), 1, 0.2);
    EXPECT_GT(came.acceptance, 0.6);
  }
}

// The mean over seeds of Λ Λ_exact⁻¹ is 1. Uncorrected it would be 1.07 here.
TEST(Hmc, PrecisionsAreUnbiased) {
  const GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 30, .columns = 8});
  const DenseGaussian<double> prior = normal_prior(8, 1);
  const GlmTilted exact = quadrature_tilted(prior, rows);
  double ratio = 0, effective = 0;
  Eigen::VectorXd shift = Eigen::VectorXd::Zero(8);
  constexpr int kSeeds = 150;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const HmcTilted came = hmc_tilted(prior, rows, {}, address(std::uint64_t(seed)));
    ratio += (came.q.lambda * exact.covariance).trace() / 8 / kSeeds;
    effective += came.effective / kSeeds;
    shift +=
        (came.mean - exact.mean).cwiseQuotient(exact.covariance.diagonal().cwiseSqrt()) / kSeeds;
    EXPECT_GE(came.effective, 160);
    EXPECT_LE(came.effective, came.sweeps);
  }
  EXPECT_NEAR(ratio, 1, 0.007);  // a client's bias counts as often as there are clients
  EXPECT_GT((effective - 1) / (effective - 10),
            1.03);  // what the test would see without the correction
  EXPECT_LT(shift.cwiseAbs().maxCoeff(), 4 / std::sqrt(150 * effective));
}

TEST(Hmc, CoordinatesAgreeAndDependOnTheAddressAlone) {
  const GlmRows rows = random_rows({.rows = 20, .columns = 3});
  const DenseGaussian<double> prior = normal_prior(3, 1);
  const HmcTilted a = hmc_tilted(prior, rows, {}, address(1)),
                  b = hmc_tilted(prior, rows, {}, address(1));
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.q.lambda, b.q.lambda);
  EXPECT_NE(a.mean, hmc_tilted(prior, rows, {}, address(2)).mean);
  EXPECT_NE(a.mean, hmc_tilted(prior, rows, {}, address(1, "other")).mean);
  EXPECT_LT((a.q.lambda * a.covariance - Eigen::MatrixXd::Identity(3, 3)).norm(), 1e-10);
  EXPECT_LT((a.q.lambda * a.mean - a.q.eta).norm(), 1e-10);
}

TEST(Hmc, TooDependentDrawsAreRefusedByName) {
  const GlmRows rows = random_rows({.rows = 20, .columns = 3});
  const HmcSettings settings{.effective_per_weight = 20, .most_per_weight = 10};
  try {
    hmc_tilted(normal_prior(3, 1), rows, settings, address(1));
    FAIL();
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hmc of client ward: effective draws must be at least 60"));
    EXPECT_THAT(error.what(), HasSubstr("of 30"));
  }
}

TEST(Hmc, EffectiveDrawsOfAnAutoregressionAreKnown) {
  constexpr std::size_t kDraws = 40000;
  Stream stream({.seed = 4, .purpose = Purpose::test});
  for (const double memory : {0.0, 0.5, 0.9}) {
    std::vector<double> chain(kDraws);
    for (std::size_t i = 1; i < kDraws; ++i) chain[i] = memory * chain[i - 1] + stream.normal();
    const double expected = kDraws * (1 - memory) / (1 + memory);
    EXPECT_NEAR(effective_draws(chain) / expected, 1, 0.1) << memory;
  }
  EXPECT_EQ(effective_draws(std::vector<double>(10, 3.0)), 0);  // a chain that never moved
}

TEST(Hmc, EffectiveDrawsOfSeveralChainsAreThoseOfTheirAverageCorrelations) {
  constexpr std::size_t kDraws = 200;
  Stream stream({.seed = 4, .purpose = Purpose::test});
  std::vector<std::vector<double>> chains(500, std::vector<double>(kDraws));
  for (std::vector<double>& chain : chains) {
    for (std::size_t i = 1; i < kDraws; ++i) chain[i] = 0.5 * chain[i - 1] + 3 * stream.normal();
  }
  EXPECT_NEAR(effective_draws(chains) / (kDraws / 3.0), 1, 0.12);
  EXPECT_EQ(effective_draws(std::span(chains).first(1)), effective_draws(chains[0]));
}

TEST(Hmc, WithoutRowsTheCavityIsDrawnFrom) {
  const HmcTilted came =
      hmc_tilted(normal_prior(2, 4, 1), GlmRows{.client = "ward", .columns = 2},
                 {.effective_per_weight = 2000, .most_per_weight = 20000}, address(3));
  EXPECT_NEAR(came.mean[0], 1, 4 * 0.5 / std::sqrt(4000));
  EXPECT_NEAR(came.q.lambda(0, 0), 4, 0.4);
}

}  // namespace
}  // namespace fedep
