// Methods with a full covariance against Hamiltonian Monte Carlo of all rows put together: 12 covariates
// at correlation 0.9, as six hospitals have them.
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/hmc.h"
#include "fedep/inference/rows/quadrature.h"
#include "fedep/random/stream.h"
#include "test/pooled_posterior.h"

namespace fedep {
namespace {

constexpr std::size_t kCovariates = 12;
constexpr double kPriorPrecision = 1 / (0.3 * 0.3);
constexpr std::size_t kSizes[] = {300, 210, 150, 90, 60, 30};

// Six sites of logistic regression, with an intercept.
std::vector<GlmRows> sites(std::uint64_t seed) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<double> truth(kCovariates + 1);
  for (double& weight : truth) weight = 0.3 * stream.normal();
  std::vector<GlmRows> out;
  for (const std::size_t size : kSizes) {
    GlmRows& rows = out.emplace_back(GlmRows{.client = "site", .columns = kCovariates + 1});
    for (std::size_t i = 0; i < size; ++i) {
      const double common = std::sqrt(0.9) * stream.normal();
      double f = truth.back();
      for (std::size_t j = 0; j < kCovariates; ++j) {
        rows.x.push_back(common + std::sqrt(0.1) * stream.normal());
        f += truth[j] * rows.x.back();
      }
      rows.x.push_back(1);
      rows.y.push_back(stream.uniform() < 1 / (1 + std::exp(-f)) ? 1 : 0);
    }
  }
  return out;
}

GlmRows pooled(const std::vector<GlmRows>& sites) {
  GlmRows all{.client = "pool", .columns = sites[0].columns};
  for (const GlmRows& site : sites) {
    all.x.insert(all.x.end(), site.x.begin(), site.x.end());
    all.y.insert(all.y.end(), site.y.begin(), site.y.end());
  }
  return all;
}

PooledPosterior exact_posterior(const GlmRows& all) {
  using Table = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Index n = Eigen::Index(all.size()), d = Eigen::Index(all.columns);
  return sample_posterior({Eigen::Map<const Table>(all.x.data(), n, d),
                           Eigen::Map<const Eigen::VectorXd>(all.y.data(), n)},
                          kPriorPrecision);
}

DenseGaussian<double> prior() {
  const Eigen::Index d = kCovariates + 1;
  return {Eigen::VectorXd::Zero(d), kPriorPrecision * Eigen::MatrixXd::Identity(d, d)};
}

void expect_near(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                 const PooledPosterior& exact, double distance, double ratio) {
  for (Eigen::Index j = 0; j < mean.size(); ++j) {
    EXPECT_NEAR((mean[j] - exact.mean[j]) / exact.deviation[j], 0, distance) << j;
    EXPECT_NEAR(std::sqrt(covariance(j, j)) / exact.deviation[j], 1, ratio) << j;
  }
}

// A site's factor after a visit is its tilted distribution over its cavity; q is their product.
template <class Tilted>
DenseGaussian<double> play(const std::vector<GlmRows>& sites, int visits, const Tilted& tilted) {
  DenseGaussian<double> q = prior();
  std::vector<DenseGaussian<double>> factors(sites.size(), power(q, 0.0));
  for (int visit = 0; visit < visits; ++visit) {
    for (std::size_t k = 0; k < sites.size(); ++k) {
      const DenseGaussian<double> cavity = quotient(q, factors[k]);
      q = tilted(cavity, sites[k]).q;
      factors[k] = quotient(q, cavity);
    }
  }
  return q;
}

// Standard errors of 20,000 draws are 0.007 deviations of a mean and half a percent of a deviation.
TEST(RowMethods, QuadratureHasTheMomentsOfPooledRowsWhetherTheyArePooledOrNot) {
  for (const std::uint64_t seed : {1, 2}) {
    const std::vector<GlmRows> hospitals = sites(seed);
    const GlmRows all = pooled(hospitals);
    const PooledPosterior exact = exact_posterior(all);
    ASSERT_GT(exact.least_effective_draws, 10000);
    const GlmTilted together = quadrature_tilted(prior(), all);
    expect_near(together.mean, together.covariance, exact, 0.05, 0.03);
    const DenseGaussian<double> apart = play(hospitals, 10, quadrature_tilted);
    expect_near(mean(apart), covariance(apart), exact, 0.05, 0.03);
  }
}

TEST(RowMethods, LaplaceOfSitesEndsAtThePooledMode) {
  const std::vector<GlmRows> hospitals = sites(3);
  const GlmRows all = pooled(hospitals);
  const GlmTilted together = laplace_tilted(prior(), all);
  const DenseGaussian<double> apart =
      play(hospitals, 30, [](const DenseGaussian<double>& cavity, const GlmRows& rows) {
        return laplace_tilted(cavity, rows);
      });
  const Eigen::VectorXd gap =
      (mean(apart) - together.mean).cwiseQuotient(together.covariance.diagonal().cwiseSqrt());
  EXPECT_LT(gap.cwiseAbs().maxCoeff(), 1e-4);
  EXPECT_LT((covariance(apart) - together.covariance).norm(), 1e-4 * together.covariance.norm());
}

TEST(RowMethods, HmcHasTheMomentsOfPooledRows) {
  const GlmRows all = pooled(sites(4));
  const PooledPosterior exact = exact_posterior(all);
  const HmcTilted came = hmc_tilted(prior(), all, {.effective_per_weight = 400},
                                    {.seed = 1, .purpose = Purpose::test});
  ASSERT_GE(came.effective, 5200);
  expect_near(came.mean, came.covariance, exact, 0.08, 0.05);
}

}  // namespace
}  // namespace fedep
