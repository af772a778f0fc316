// The variational Gaussian with a full precision: exact for linear regression, stationary elsewhere, and
// better in its own measure than its neighbours.
#include "fedep/inference/rows/full_ngvi.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/quadrature.h"
#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

GlmTilted of_moments(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance) {
  return {.q = dense_from_moments<double, Eigen::Dynamic>(mean, covariance),
          .mean = mean,
          .covariance = covariance};
}

TEST(FullNgvi, LinearRegressionIsExact) {
  const GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 20, .columns = 4});
  const DenseGaussian<double> cavity = normal_prior(4, 0.3, 0.2);
  const GlmTilted came = ngvi_tilted(cavity, rows), exact = quadrature_tilted(cavity, rows);
  EXPECT_LT((came.mean - exact.mean).norm(), 1e-10);
  EXPECT_LT((came.covariance - exact.covariance).norm(), 1e-10);
}

TEST(FullNgvi, NoNeighbourHasMoreEvidence) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    const GlmRows rows =
        random_rows({.outcome = outcome, .rows = 25, .columns = 3, .correlation = 0.8});
    const DenseGaussian<double> cavity = normal_prior(3, 0.5);
    const GlmTilted best = ngvi_tilted(cavity, rows);
    const double most = evidence_bound(cavity, rows, best);
    for (Eigen::Index j = 0; j < 3; ++j) {
      for (const double sign : {-1.0, 1.0}) {
        Eigen::VectorXd mean = best.mean;
        mean[j] += sign * 0.01 * std::sqrt(best.covariance(j, j));
        EXPECT_LT(evidence_bound(cavity, rows, of_moments(mean, best.covariance)), most);
        Eigen::MatrixXd scale = Eigen::MatrixXd::Identity(3, 3);
        scale(j, (j + 1) % 3) = sign * 0.01;  // a shear, which turns and stretches
        const Eigen::MatrixXd sheared = scale * best.covariance * scale.transpose();
        EXPECT_LT(evidence_bound(cavity, rows, of_moments(best.mean, sheared)), most);
        const Eigen::MatrixXd wider = (1 + sign * 0.01) * best.covariance;
        EXPECT_LT(evidence_bound(cavity, rows, of_moments(best.mean, wider)), most);
      }
    }
    EXPECT_GT(most, evidence_bound(cavity, rows, laplace_tilted(cavity, rows)));
    EXPECT_GT(most, evidence_bound(cavity, rows, quadrature_tilted(cavity, rows)));
  }
}

TEST(FullNgvi, ExtremeRowsEndWithAProperAnswer) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    GlmRows rows = random_rows({.outcome = outcome, .rows = 40, .columns = 3});
    for (std::size_t i = 0; i < 5; ++i) rows.x[3 * i] = i % 2 == 0 ? 50 : -50;
    const GlmTilted came = ngvi_tilted(normal_prior(3, 1), rows);
    EXPECT_TRUE(came.mean.allFinite());
    EXPECT_GT(came.covariance.diagonal().minCoeff(), 0);
  }
}

// Whole steps go back and forth here, and averages of e^f over the mode's curvature are beyond all numbers.
TEST(FullNgvi, StepsAreHalvedUntilEvidenceGrows) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    GlmRows rows = random_rows({.outcome = outcome, .rows = 23, .columns = 15, .weights = 0.2});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < 5; ++j) rows.x[15 * i + j] *= 10;
    }
    const DenseGaussian<double> cavity = normal_prior(15, 0.06);
    const GlmTilted came = ngvi_tilted(cavity, rows);
    EXPECT_LT(came.sweeps, 300) << int(outcome);
    EXPECT_GT(evidence_bound(cavity, rows, came),
              evidence_bound(cavity, rows, quadrature_tilted(cavity, rows)));
  }
}

TEST(FullNgvi, WithoutRowsTheCavityIsLeft) {
  const DenseGaussian<double> cavity = normal_prior(2, 3, 0.5);
  const GlmTilted came = ngvi_tilted(cavity, GlmRows{.client = "ward", .columns = 2});
  EXPECT_LT((came.q.lambda - cavity.lambda).norm(), 1e-14);
  EXPECT_LT((came.mean - Eigen::Vector2d::Constant(0.5)).norm(), 1e-14);
}

}  // namespace
}  // namespace fedep
