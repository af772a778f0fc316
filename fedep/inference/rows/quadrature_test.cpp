// EP over a client's rows: exact where it should be, near brute force where it need not be, and the
// edges: no row, one row, separation, extreme rows, equal columns, improper cavities.
#include "fedep/inference/rows/quadrature.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/glm_energy.h"
#include "fedep/inference/rows/row_quadrature.h"
#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

Moments brute_force(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  const GlmEnergy energy(cavity, rows);
  const GlmTilted around = laplace_tilted(cavity, rows);
  return grid_moments([&](const Eigen::VectorXd& theta) { return -energy.value(theta); },
                      around.mean, around.covariance, 9, rows.columns < 3 ? 0.1 : 0.3);
}

void expect_same(const GlmTilted& a, const GlmTilted& b, double tolerance) {
  const Distance gap = distance(a.mean, a.covariance, {b.mean, b.covariance});
  EXPECT_LT(gap.mean, tolerance);
  EXPECT_LT(gap.log_deviation, tolerance);
}

TEST(Quadrature, LinearRegressionIsExact) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 30, .columns = 5});
  rows.noise = 0.7;
  rows.offset.assign(30, 0.25);
  const DenseGaussian<double> cavity = normal_prior(5, 0.5, 0.3);
  const GlmTilted came = quadrature_tilted(cavity, rows);
  using Table = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Table> x(rows.x.data(), 30, 5);
  const Eigen::Map<const Eigen::VectorXd> y(rows.y.data(), 30);
  const Eigen::MatrixXd precision = cavity.lambda + x.transpose() * x / 0.49;
  const Eigen::VectorXd mean =
      precision.ldlt().solve(cavity.eta + x.transpose() * (y.array() - 0.25).matrix() / 0.49);
  EXPECT_LT((came.mean - mean).norm(), 1e-12);
  EXPECT_LT((came.covariance * precision - Eigen::MatrixXd::Identity(5, 5)).norm(), 1e-12);
  EXPECT_LT((came.q.lambda - precision).norm(), 1e-11);
  EXPECT_LT((came.q.eta - precision * mean).norm(), 1e-11);
  EXPECT_EQ(came.sweeps, 1);
}

// With one row EP is exact: its moments along x are the row's, and across x the cavity's.
TEST(Quadrature, OneRowHasTheMomentsOfItsIntegral) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    for (const double size : {0.1, 1.0, 50.0}) {
      GlmRows rows{.client = "ward",
                   .outcome = outcome,
                   .columns = 2,
                   .x = {0.6 * size, 0.8 * size},
                   .y = {1},
                   .offset = {-0.4}};
      const GlmTilted came = quadrature_tilted(normal_prior(2, 1, 0.1), rows);
      const RowMoments along =
          tilted_row(rows.likelihood(0), 0.14 * size, size * size);  // of f = x·θ
      const Eigen::Matrix2d covariance = came.covariance;
      const Eigen::Vector2d direction(0.6, 0.8), across(-0.8, 0.6);
      EXPECT_NEAR(size * direction.dot(came.mean), along.mean, 1e-9 * std::sqrt(along.variance));
      EXPECT_NEAR(size * size * direction.dot(covariance * direction) / along.variance, 1, 1e-8);
      EXPECT_NEAR(across.dot(came.mean), 0.02 * -1, 1e-9);
      EXPECT_NEAR(across.dot(covariance * across), 1, 1e-9);
      EXPECT_NEAR(across.dot(covariance * direction), 0, 1e-9);
    }
  }
}

// Counts of few events have skewed posteriors, to which EP is less near.
TEST(Quadrature, FewCoefficientsAreThoseOfABruteForceGrid) {
  for (const auto& [outcome, exposure, tolerance] :
       {std::tuple(GlmOutcome::yes_no, 1, 0.01), std::tuple(GlmOutcome::count, 20, 0.01),
        std::tuple(GlmOutcome::count, 1, 0.04)}) {
    for (const std::size_t columns : {1u, 2u, 3u}) {
      for (const std::size_t rows : {3u, 12u, 40u}) {
        const GlmRows data = random_rows({.outcome = outcome,
                                          .rows = rows,
                                          .columns = columns,
                                          .correlation = 0.5,
                                          .offset = std::log(exposure),
                                          .seed = 100 * rows + columns});
        const DenseGaussian<double> prior = normal_prior(columns, 1);
        const GlmTilted came = quadrature_tilted(prior, data);
        const Distance gap = distance(came.mean, came.covariance, brute_force(prior, data));
        EXPECT_LT(gap.mean, 0.02) << int(outcome) << " " << columns << " " << rows;
        EXPECT_LT(gap.log_deviation, tolerance) << int(outcome) << " " << columns << " " << rows;
        EXPECT_LE(came.sweeps, 20);
      }
    }
  }
}

// Where Laplace's mode is far from the mean, that the moments are near says more than it would elsewhere.
TEST(Quadrature, ItIsTheMeanAndNotTheMode) {
  GlmRows rows{.client = "ward", .columns = 1, .x = {1, 1, 1, 1}, .y = {1, 1, 1, 1}};
  const DenseGaussian<double> prior = normal_prior(1, 0.05);
  const Moments exact = brute_force(prior, rows);
  const GlmTilted moments = quadrature_tilted(prior, rows), mode = laplace_tilted(prior, rows);
  EXPECT_LT(distance(moments.mean, moments.covariance, exact).mean, 0.05);
  EXPECT_GT(distance(mode.mean, mode.covariance, exact).mean, 0.3);
}

// Rows that repeat what others have said already make EP too sure (Cunningham+11): here by 15 %.
TEST(Quadrature, SeparatedClassesUnderAProperPriorConverge) {
  GlmRows rows{.client = "ward", .columns = 2};
  for (int i = -10; i < 10; ++i) {
    rows.x.insert(rows.x.end(), {i + 0.5, 1.0});
    rows.y.push_back(i >= 0 ? 1 : 0);
  }
  const DenseGaussian<double> prior = normal_prior(2, 1);
  const Moments exact = brute_force(prior, rows);
  const GlmTilted moments = quadrature_tilted(prior, rows), mode = laplace_tilted(prior, rows);
  const Distance gap = distance(moments.mean, moments.covariance, exact);
  const Distance of_mode = distance(mode.mean, mode.covariance, exact);
  EXPECT_LT(gap.mean, 0.05);
  EXPECT_LT(gap.log_deviation, 0.2);
  EXPECT_LT(10 * gap.mean, of_mode.mean);
}

TEST(Quadrature, NoRowsLeaveTheCavity) {
  const DenseGaussian<double> cavity = normal_prior(3, 2, 0.5);
  const GlmTilted came = quadrature_tilted(cavity, {.client = "ward", .columns = 3});
  EXPECT_LT((came.mean - Eigen::Vector3d::Constant(0.5)).norm(), 1e-15);
  EXPECT_LT((came.covariance - 0.5 * Eigen::Matrix3d::Identity()).norm(), 1e-15);
  EXPECT_EQ(came.sweeps, 0);
}

TEST(Quadrature, ExtremeRowsEndWithAProperAnswer) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    GlmRows rows = random_rows({.outcome = outcome, .rows = 40, .columns = 3});
    for (std::size_t i = 0; i < 5; ++i) {
      rows.x[3 * i] = i % 2 == 0 ? 50 : -50;
      rows.y[i] = i % 3 == 0 ? 1 : 0;
    }
    const DenseGaussian<double> prior = normal_prior(3, 1);
    const GlmTilted came = quadrature_tilted(prior, rows);
    const Distance gap = distance(came.mean, came.covariance, brute_force(prior, rows));
    EXPECT_LT(gap.mean, 0.05) << int(outcome);
    EXPECT_LT(gap.log_deviation, 0.05) << int(outcome);
  }
}

TEST(Quadrature, AColumnTwiceUnderAProperPriorSharesItsWeight) {
  GlmRows once = random_rows({.rows = 60, .columns = 2}), twice = once;
  twice.columns = 3;
  twice.x.clear();
  for (std::size_t i = 0; i < once.size(); ++i) {
    twice.x.insert(twice.x.end(), {once.x[2 * i], once.x[2 * i], once.x[2 * i + 1]});
  }
  // The sum of two weights of precision 2 has precision 1.
  DenseGaussian<double> prior_once = normal_prior(2, 1), prior = normal_prior(3, 1);
  prior.lambda.diagonal().head(2).setConstant(2);
  const GlmTilted a = quadrature_tilted(prior_once, once), b = quadrature_tilted(prior, twice);
  EXPECT_NEAR(b.mean[0] + b.mean[1], a.mean[0], 1e-6);
  EXPECT_NEAR(b.mean[0], b.mean[1], 1e-6);
  EXPECT_NEAR(b.covariance.topLeftCorner(2, 2).sum(), a.covariance(0, 0), 1e-6);
  const Eigen::Vector3d apart(1, -1, 0);  // of which data say nothing
  EXPECT_NEAR(apart.dot(b.covariance * apart), 1, 1e-6);
}

TEST(Quadrature, TheOrderOfRowsDoesNotMatter) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    const GlmRows rows = random_rows(
        {.outcome = outcome, .rows = 150, .columns = 12, .correlation = 0.9, .weights = 0.3});
    GlmRows shuffled = rows;
    Stream stream({.seed = 5, .purpose = Purpose::test});
    const auto order = permutation(stream, rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::copy_n(rows.row(order[i]).begin(), rows.columns, shuffled.x.begin() + i * rows.columns);
      shuffled.y[i] = rows.y[order[i]];
    }
    const DenseGaussian<double> prior = normal_prior(12, 11);
    expect_same(quadrature_tilted(prior, rows), quadrature_tilted(prior, shuffled), 1e-6);
  }
}

TEST(Quadrature, BlocksAreRowsOneByOne) {
  // 200 rows of 20 columns are ten blocks, whose products of matrices must be what rank-one updates,
  // written out here, come to.
  const GlmRows rows = random_rows({.rows = 200, .columns = 20, .weights = 0.4});
  const DenseGaussian<double> prior = normal_prior(20, 1);
  const GlmTilted came = quadrature_tilted(prior, rows);
  std::vector<double> tau(200, 0.0), nu(200, 0.0);
  Eigen::MatrixXd covariance = prior.lambda.inverse();
  Eigen::VectorXd mean = covariance * prior.eta;
  for (int sweep = 0; sweep < 30; ++sweep) {
    for (std::size_t i = 0; i < 200; ++i) {
      const Eigen::Map<const Eigen::VectorXd> x(rows.row(i).data(), 20);
      const Eigen::VectorXd s = covariance * x;
      const double v = x.dot(s), m = x.dot(mean), left = 1 - tau[i] * v;
      const double cavity_variance = v / left, cavity_mean = (m - nu[i] * v) / left;
      const RowMoments tilted = tilted_row(rows.likelihood(i), cavity_mean, cavity_variance);
      const double more = 1 / tilted.variance - 1 / cavity_variance - tau[i];
      const double more_nu = tilted.mean / tilted.variance - cavity_mean / cavity_variance - nu[i];
      tau[i] += more;
      nu[i] += more_nu;
      covariance -= more / (1 + more * v) * s * s.transpose();
      mean += (more_nu - more * m) / (1 + more * v) * s;
    }
  }
  const Distance gap = distance(came.mean, came.covariance, {mean, covariance});
  EXPECT_LT(gap.mean, 1e-6);
  EXPECT_LT(gap.log_deviation, 1e-6);
  EXPECT_LT((came.covariance - covariance).cwiseAbs().maxCoeff(),
            1e-6 * covariance.diagonal().maxCoeff());
}

// q / cavity is the product of all rows' factors: natural and central coordinates tell the same.
TEST(Quadrature, CoordinatesAgree) {
  const GlmRows rows = random_rows({.outcome = GlmOutcome::count, .rows = 50, .columns = 6});
  const GlmTilted came = quadrature_tilted(normal_prior(6, 1), rows);
  EXPECT_LT((came.q.lambda * came.covariance - Eigen::MatrixXd::Identity(6, 6)).norm(), 1e-10);
  EXPECT_LT((came.q.lambda * came.mean - came.q.eta).norm(), 1e-10);
  EXPECT_EQ(came.q.lambda, Eigen::MatrixXd(came.q.lambda.transpose()));
  EXPECT_EQ(came.covariance, Eigen::MatrixXd(came.covariance.transpose()));
}

TEST(Quadrature, TheSameRowsGiveTheSameBits) {
  const GlmRows rows = random_rows({.rows = 80, .columns = 7});
  const DenseGaussian<double> prior = normal_prior(7, 1);
  const GlmTilted a = quadrature_tilted(prior, rows), b = quadrature_tilted(prior, rows);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.covariance, b.covariance);
}

template <class Error>
std::string complaint(const DenseGaussian<double>& cavity, const GlmRows& rows) {
  try {
    quadrature_tilted(cavity, rows);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Quadrature, WhatHasNoPosteriorIsRefusedWithClientAndRow) {
  // Under a flat cavity, the second column is in one row alone: its own cavity is improper for ever.
  const GlmRows alone{
      .client = "ward", .columns = 2, .x = {1, 0, 1, 0, 1, 0, 1, 1}, .y = {1, 0, 1, 0}};
  DenseGaussian<double> cavity = normal_prior(2, 1e-12);
  cavity.lambda.setZero();
  EXPECT_EQ(
      complaint<RunError>(cavity, alone),
      "quadrature of client ward: row 3 must stand still, but waits, its cavity being improper, "
      "after 100 sweeps: phase.guard (skip, back_off, floor) or, in bayes_admm, a smaller "
      "dual_rate");
  cavity.lambda = -Eigen::Matrix2d::Identity();
  EXPECT_EQ(complaint<InputError>(cavity, alone),
            "quadrature of client ward: cavity times likelihood must be positive definite and "
            "finite, but is not");
  EXPECT_THAT(complaint<InputError>(normal_prior(3, 1), alone), HasSubstr("cavity must be of 2"));
}

}  // namespace
}  // namespace fedep
