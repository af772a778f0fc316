// The tilted mode and its whole curvature: exact for linear regression, a zero gradient elsewhere, and
// the same curvature as differences of the log density have.
#include "fedep/inference/rows/full_laplace.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/quadrature.h"
#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

TEST(FullLaplace, LinearRegressionIsExact) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 25, .columns = 4});
  rows.noise = 2;
  const DenseGaussian<double> cavity = normal_prior(4, 0.2, -1);
  const GlmTilted came = laplace_tilted(cavity, rows), exact = quadrature_tilted(cavity, rows);
  EXPECT_LT((came.mean - exact.mean).norm(), 1e-12);
  EXPECT_LT((came.covariance - exact.covariance).norm(), 1e-12);
  EXPECT_LT((came.q.eta - exact.q.eta).norm(), 1e-11);
  EXPECT_LE(came.sweeps, 1);  // Newton's method is exact after one step
}

TEST(FullLaplace, TheModeHasNoSlopeAndTheCurvatureIsThatOfDifferences) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    const GlmRows rows = random_rows({.outcome = outcome, .rows = 40, .columns = 3});
    const DenseGaussian<double> cavity = normal_prior(3, 0.5, 0.2);
    const GlmTilted came = laplace_tilted(cavity, rows);
    const GlmEnergy energy(cavity, rows);
    EXPECT_LT(energy.gradient(came.mean).norm(), 1e-8);
    for (Eigen::Index j = 0; j < 3; ++j) {
      const Eigen::VectorXd step = 1e-5 * Eigen::VectorXd::Unit(3, j);
      const Eigen::VectorXd column =
          (energy.gradient(came.mean + step) - energy.gradient(came.mean - step)) / 2e-5;
      EXPECT_LT((column - came.q.lambda.col(j)).norm(), 1e-6 * column.norm());
    }
    EXPECT_LT((came.q.lambda * came.covariance - Eigen::MatrixXd::Identity(3, 3)).norm(), 1e-10);
  }
}

TEST(FullLaplace, StartsFarAwayAreBroughtHome) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::count, .rows = 30, .columns = 2});
  const DenseGaussian<double> near = normal_prior(2, 1e-3), far = normal_prior(2, 1e-3, 400);
  const GlmEnergy energy(far, rows);
  EXPECT_LT(energy.gradient(laplace_tilted(far, rows).mean).norm(), 1e-7);
  EXPECT_LE(laplace_tilted(near, rows).sweeps, 20);
  for (std::size_t i = 0; i < rows.size(); ++i) rows.x[2 * i] *= 50;
  EXPECT_LE(laplace_tilted(near, rows).sweeps, 100);
}

ClassRows random_classes(std::size_t n, std::size_t classes) {
  Stream stream({.seed = 3, .purpose = Purpose::test});
  ClassRows rows{.client = "ward", .columns = 3, .classes = classes};
  for (std::size_t i = 0; i < n; ++i) {
    rows.x.insert(rows.x.end(), {stream.normal(), stream.normal(), 1.0});
    rows.labels.push_back(std::int32_t(stream.below(classes)));
  }
  return rows;
}

// Two classes of precision λ each are one logit of precision λ/2: its weight is their difference.
TEST(FullLaplace, TwoClassesAreALogit) {
  const ClassRows classes = random_classes(50, 2);
  GlmRows logit{.client = "ward", .columns = 3, .x = classes.x};
  for (const std::int32_t label : classes.labels) logit.y.push_back(label);
  const GlmTilted both = laplace_tilted(normal_prior(6, 0.8), classes);
  const GlmTilted one = laplace_tilted(normal_prior(3, 0.4), logit);
  Eigen::MatrixXd difference = Eigen::MatrixXd::Zero(3, 6);  // of class 1 and class 0
  for (Eigen::Index j = 0; j < 3; ++j) {
    difference(j, 2 * j) = -1;
    difference(j, 2 * j + 1) = 1;
  }
  EXPECT_LT((difference * both.mean - one.mean).norm(), 1e-9);
  EXPECT_LT((difference * both.covariance * difference.transpose() - one.covariance).norm(), 1e-9);
}

TEST(FullLaplace, ClassesHaveTheCurvatureOfDifferences) {
  const ClassRows rows = random_classes(30, 4);
  const Eigen::VectorXd at = Eigen::VectorXd::LinSpaced(12, -0.5, 0.5);
  const auto loss = [&](const Eigen::VectorXd& theta) {
    double sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double total = 0, own = 0;
      for (std::size_t c = 0; c < 4; ++c) {
        double z = 0;
        for (std::size_t j = 0; j < 3; ++j) z += rows.x[3 * i + j] * theta[Eigen::Index(4 * j + c)];
        total += std::exp(z);
        if (std::int32_t(c) == rows.labels[i]) own = z;
      }
      sum += std::log(total) - own;
    }
    return sum;
  };
  const Eigen::MatrixXd hessian = likelihood_hessian(rows, at);
  constexpr double kStep = 1e-3;
  for (Eigen::Index a = 0; a < 12; ++a) {
    for (Eigen::Index b = 0; b < 12; ++b) {
      const Eigen::VectorXd i = kStep * Eigen::VectorXd::Unit(12, a);
      const Eigen::VectorXd j = kStep * Eigen::VectorXd::Unit(12, b);
      const double difference =
          (loss(at + i + j) - loss(at + i - j) - loss(at - i + j) + loss(at - i - j)) /
          (4 * kStep * kStep);
      EXPECT_NEAR(hessian(a, b), difference, 1e-4);
    }
  }
}

TEST(FullLaplace, TheLikelihoodsHessianIsWhatTheModeAddsToTheCavity) {
  const GlmRows rows = random_rows({.rows = 30, .columns = 3});
  const DenseGaussian<double> cavity = normal_prior(3, 2);
  const GlmTilted came = laplace_tilted(cavity, rows);
  EXPECT_LT((came.q.lambda - cavity.lambda - likelihood_hessian(rows, came.mean)).norm(), 1e-12);
}

TEST(FullLaplace, WithoutRowsTheCavityIsLeft) {
  const DenseGaussian<double> cavity = normal_prior(2, 3, 0.5);
  const GlmTilted came = laplace_tilted(cavity, GlmRows{.client = "ward", .columns = 2});
  EXPECT_LT((came.mean - Eigen::Vector2d::Constant(0.5)).norm(), 1e-15);
  EXPECT_EQ(came.q.lambda, cavity.lambda);
}

TEST(FullLaplace, WhatHasNoModeIsRefused) {
  const auto complaint = [](const auto& cavity, const auto& rows) -> std::string {
    try {
      laplace_tilted(cavity, rows);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  const GlmRows rows = random_rows({.rows = 10, .columns = 2});
  EXPECT_EQ(complaint(normal_prior(2, -100), rows),
            "laplace of client ward: cavity times likelihood must be positive definite and finite, "
            "but is not");
  ClassRows classes = random_classes(5, 3);
  classes.labels[4] = 3;
  EXPECT_EQ(complaint(normal_prior(9, 1), classes),
            "rows of client ward: the class of row 4 must be in [0, 3), but is 3");
  EXPECT_THAT(complaint(normal_prior(8, 1), random_classes(5, 3)),
              HasSubstr("cavity must be of 9"));
}

}  // namespace
}  // namespace fedep
