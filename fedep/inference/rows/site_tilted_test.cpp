// A visit with an intercept of its own and with estimated noise, against brute force over all that is
// integrated, and the edges: no row, tiny clients, ten thousand rows, outcomes far from zero, improper cavities.
#include "fedep/inference/rows/site_tilted.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/rows/quadrature.h"
#include "fedep/inference/rows/test_glm_rows.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

// A cavity with correlations among all its parameters.
DenseGaussian<double> correlated_cavity(std::size_t d, double log_tau = std::log(0.5)) {
  const auto size = Eigen::Index(d);
  Eigen::MatrixXd lambda = Eigen::MatrixXd::Constant(size, size, 0.2);
  lambda.diagonal().array() += 1;
  Eigen::VectorXd mean = Eigen::VectorXd::Constant(size, 0.2);
  mean[size - 1] = log_tau;
  return {lambda * mean, lambda};
}

double log_density(const DenseGaussian<double>& q, const Eigen::VectorXd& theta) {
  return q.eta.dot(theta) - 0.5 * theta.dot(q.lambda * theta);
}

// log Σ exp
double log_sum(const std::vector<double>& terms) {
  const double top = *std::ranges::max_element(terms);
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - top);
  return top + std::log(sum);
}

Moments moments_of(const SiteTilted& q) { return {q.mean, q.covariance}; }

void expect_near(const SiteTilted& came, const Moments& exact, double tolerance) {
  const Distance gap = distance(came.mean, came.covariance, exact);
  EXPECT_LT(gap.mean, tolerance);
  EXPECT_LT(gap.log_deviation, tolerance);
}

// Rows whose only column is the intercept's: (m, l), with u summed over a grid of its own.
Moments brute_force_intercept(const DenseGaussian<double>& cavity, const GlmRows& rows,
                              const SiteTilted& around) {
  return grid_moments(
      [&](const Eigen::VectorXd& theta) {
        const double m = theta[0], tau = std::exp(theta[1]);
        const double step = std::min(0.1, 0.1 / tau);
        std::vector<double> terms;
        for (double u = -7; u <= 7; u += step) {
          terms.push_back(-0.5 * u * u);
          for (std::size_t i = 0; i < rows.size(); ++i) {
            terms.back() += rows.likelihood(i).log_density(m + tau * u);
          }
        }
        return log_density(cavity, theta) + log_sum(terms) + std::log(step);
      },
      around.mean, around.covariance, 6, 0.3);
}

TEST(Evidence, OfNumbersIsTheClosedForm) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 7, .columns = 2});
  rows.noise = 0.8;
  rows.offset.assign(7, 0.3);
  const DenseGaussian<double> cavity = normal_prior(2, 0.5, 0.3);
  RowSites sites;
  const double came = quadrature_with_evidence(cavity, rows, sites).log_evidence;
  // N(y - offset; X mean, X Λ⁻¹ Xᵀ + σ² I), times the cavity's own mass.
  using Table = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd x = Eigen::Map<const Table>(rows.x.data(), 7, 2);
  const Eigen::MatrixXd spread = x * x.transpose() / 0.5 + 0.64 * Eigen::MatrixXd::Identity(7, 7);
  const Eigen::VectorXd gap = Eigen::Map<const Eigen::VectorXd>(rows.y.data(), 7) -
                              Eigen::VectorXd::Constant(7, 0.3) -
                              x * Eigen::VectorXd::Constant(2, 0.3);
  const double normal = -0.5 * (gap.dot(spread.ldlt().solve(gap)) + std::log(spread.determinant()) +
                                7 * std::log(2 * std::numbers::pi));
  const double mass = std::log(2 * std::numbers::pi / 0.5) + 0.5 * 0.5 * 2 * 0.09;
  EXPECT_NEAR(came, normal + mass, 1e-10);
}

TEST(Evidence, OfYesNoAndCountsIsNearBruteForce) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count}) {
    for (const std::size_t n : {1u, 5u, 40u}) {
      const GlmRows rows = random_rows({.outcome = outcome, .rows = n, .columns = 2, .seed = n});
      const DenseGaussian<double> cavity = normal_prior(2, 0.5, 0.3);
      RowSites sites;
      const EvidentTilted came = quadrature_with_evidence(cavity, rows, sites);
      const Eigen::MatrixXd root = came.covariance.llt().matrixL();
      std::vector<double> terms;
      const double step = 0.1;
      for (double a = -8; a <= 8; a += step) {
        for (double b = -8; b <= 8; b += step) {
          const Eigen::VectorXd theta = came.mean + root * Eigen::Vector2d(a, b);
          double value = log_density(cavity, theta);
          for (std::size_t i = 0; i < n; ++i) {
            value += rows.likelihood(i).log_density(rows.row(i)[0] * theta[0] +
                                                    rows.row(i)[1] * theta[1]);
          }
          terms.push_back(value);
        }
      }
      const double exact = log_sum(terms) + 2 * std::log(step) + std::log(root.determinant());
      EXPECT_NEAR(came.log_evidence, exact, n == 1 ? 1e-7 : 0.03) << n;
    }
  }
}

TEST(Evidence, EpFromNeighboursFactorsEndsWhereItWould) {
  const GlmRows rows = random_rows({.rows = 60, .columns = 3});
  RowSites sites, cold;
  quadrature_with_evidence(normal_prior(3, 1, 0.5), rows, sites);
  const EvidentTilted warm = quadrature_with_evidence(normal_prior(3, 0.8), rows, sites);
  const EvidentTilted fresh = quadrature_with_evidence(normal_prior(3, 0.8), rows, cold);
  EXPECT_NEAR(warm.log_evidence, fresh.log_evidence, 1e-8);
  EXPECT_LT((warm.mean - fresh.mean).norm(), 1e-6);
  EXPECT_EQ(fresh.q.eta, quadrature_tilted(normal_prior(3, 0.8), rows).q.eta);
}

TEST(SiteTilted, InterceptsOfTheirOwnAreNearBruteForce) {
  for (const GlmOutcome outcome : {GlmOutcome::yes_no, GlmOutcome::count, GlmOutcome::number}) {
    for (const std::size_t n : {1u, 4u, 12u}) {
      const GlmRows rows =
          random_rows({.outcome = outcome, .rows = n, .columns = 1, .weights = 1.5, .seed = n});
      const DenseGaussian<double> cavity = correlated_cavity(2);
      const SiteTilted came = site_tilted(cavity, rows, {.intercept = true});
      const Moments exact = brute_force_intercept(cavity, rows, came);
      // EP over rows is exact for numbers and for one row.
      const bool is_exact = outcome == GlmOutcome::number || n == 1;
      expect_near(came, exact, is_exact ? 1e-3 : 0.02);
    }
  }
}

// Numbers with both: b integrated by hand, N(y; m, σ² I + τ² 1 1ᵀ).
TEST(SiteTilted, NoiseAndInterceptTogetherAreBruteForces) {
  const GlmRows rows =
      random_rows({.outcome = GlmOutcome::number, .rows = 12, .columns = 1, .seed = 3});
  double sum = 0, squares = 0;
  for (const double y : rows.y) sum += y, squares += y * y;
  const double n = 12;
  const DenseGaussian<double> cavity = correlated_cavity(3, 0.1);
  const SiteTilted came = site_tilted(cavity, rows, {.intercept = true, .noise = true});
  const Moments exact = grid_moments(
      [&](const Eigen::VectorXd& theta) {
        const double m = theta[0], tau2 = std::exp(2 * theta[1]), noise2 = std::exp(2 * theta[2]);
        const double total = noise2 + n * tau2;
        const double left = squares - 2 * m * sum + n * m * m, all = (sum - n * m) * (sum - n * m);
        return log_density(cavity, theta) - 0.5 * ((n - 1) * std::log(noise2) + std::log(total)) -
               0.5 * (left - tau2 * all / total) / noise2;
      },
      came.mean, came.covariance, 7, 0.25);
  expect_near(came, exact, 2e-4);
}

TEST(SiteTilted, EstimatedNoiseIsBruteForces) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 9, .columns = 2, .seed = 5});
  rows.offset.assign(9, 0.4);
  const DenseGaussian<double> cavity = correlated_cavity(3, 0.3);
  const SiteTilted came = site_tilted(cavity, rows, {.noise = true});
  const Moments exact = grid_moments(
      [&](const Eigen::VectorXd& theta) {
        double value = log_density(cavity, theta);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const double gap =
              rows.y[i] - 0.4 - rows.row(i)[0] * theta[0] - rows.row(i)[1] * theta[1];
          value -= 0.5 * gap * gap * std::exp(-2 * theta[2]) + theta[2];
        }
        return value;
      },
      came.mean, came.covariance, 7, 0.25);
  expect_near(came, exact, 2e-4);
}

// Widths of h from a hundredth of the cavity's to all of it.
TEST(SiteTilted, HalfTheSpacingGivesTheSame) {
  for (const std::size_t n : {2u, 30u, 10'000u}) {
    for (const GlmOutcome outcome : {GlmOutcome::number, GlmOutcome::yes_no}) {
      if (n > 1000 && outcome == GlmOutcome::yes_no) continue;  // as the 30 rows, but longer
      const bool noise = outcome == GlmOutcome::number;
      const GlmRows rows = random_rows({.outcome = outcome, .rows = n, .columns = 3, .seed = 9});
      const SiteParts parts{.intercept = true, .noise = noise};
      const DenseGaussian<double> cavity = correlated_cavity(3 + parts.size());
      const SiteTilted once = site_tilted(cavity, rows, parts);
      const SiteTilted fine = site_tilted(cavity, rows, parts, {}, {.spacing = 0.3, .drop = 24});
      expect_near(once, moments_of(fine), 1e-4);
      EXPECT_LT(once.nodes, noise ? 700u : 50u);
    }
  }
}

TEST(SiteTilted, TenThousandRowsKnowTheirNoise) {
  GlmRows rows = random_rows({.outcome = GlmOutcome::number, .rows = 10'000, .columns = 2});
  for (double& y : rows.y) y = 3 * y + 1e4;  // noise 3, far from zero
  DenseGaussian<double> cavity = normal_prior(3, 1e-10);
  cavity.lambda(2, 2) = 1;
  const SiteTilted came = site_tilted(cavity, rows, {.noise = true});
  EXPECT_NEAR(came.mean[2], std::log(3.0), 0.03);
  EXPECT_NEAR(std::sqrt(came.covariance(2, 2)) * std::sqrt(2e4), 1, 0.02);
}

TEST(SiteTilted, WhereTheSearchBeginsDoesNotMatter) {
  const GlmRows rows = random_rows({.rows = 25, .columns = 2, .seed = 4});
  const DenseGaussian<double> cavity = correlated_cavity(3);
  const SiteTilted usual = site_tilted(cavity, rows, {.intercept = true});
  for (const double start : {-4.0, 3.0}) {
    const SiteTilted other =
        site_tilted(cavity, rows, {.intercept = true}, Eigen::VectorXd::Constant(1, start));
    expect_near(other, moments_of(usual), 1e-4);
  }
}

TEST(SiteTilted, WithoutRowsTheCavityIsLeft) {
  GlmRows rows = random_rows({.rows = 1, .columns = 2});
  rows.x.clear(), rows.y.clear(), rows.offset.clear();
  const DenseGaussian<double> cavity = correlated_cavity(3);
  EXPECT_EQ(site_tilted(cavity, rows, {.intercept = true}).q.eta, cavity.eta);
}

TEST(SiteTilted, WhatCannotBeIsRefused) {
  const GlmRows rows = random_rows({.rows = 5, .columns = 2});
  const auto refusal = [&](const DenseGaussian<double>& cavity, const SiteParts& parts) {
    try {
      site_tilted(cavity, rows, parts);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(correlated_cavity(3), {.noise = true}), HasSubstr("estimated noise"));
  EXPECT_THAT(refusal(correlated_cavity(2), {.intercept = true}), HasSubstr("cavity"));
  EXPECT_THAT(refusal(correlated_cavity(2), {}), HasSubstr("neither"));
  DenseGaussian<double> improper = correlated_cavity(3);
  improper.lambda(2, 2) = -0.5;
  EXPECT_THAT(refusal(improper, {.intercept = true}), HasSubstr("positive definite"));
}

}  // namespace
}  // namespace fedep
