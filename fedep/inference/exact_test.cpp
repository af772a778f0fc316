#include "fedep/inference/exact.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using Q = Gaussian<HostVector<double>>;
using P = DenseGaussian<double, 2>;

// KL(p ‖ q) of a dense p and a diagonal q, up to terms that do not depend on q:
// ½ Σ_i [ lambda_i (Sigma_ii + (m_i - mu_i)²) - log lambda_i ].
double kl_to_diagonal(const P& p, const Q& q) {
  const auto sigma = covariance(p);
  const auto mu = mean(p);
  const auto center = mean(q);
  const auto lambda = q.lambda_full();
  double total = 0;
  for (int i = 0; i < 2; ++i) {
    const double gap = center[std::size_t(i)] - mu[i];
    const double l = lambda[std::size_t(i)];
    total += 0.5 * (l * (sigma(i, i) + gap * gap) - std::log(l));
  }
  return total;
}

// Lambda = [[2, 1], [1, 2]], eta = (3, 0).
P example() {
  P p{Eigen::Vector2d(3, 0), Eigen::Matrix2d()};
  p.lambda << 2, 1, 1, 2;
  return p;
}

Q unit_cavity() { return {HostVector<double>{0, 0}, 1.0}; }

TEST(DiagonalProjection, LeavesADiagonalGaussianAsItIs) {
  const Q q(HostVector<double>{2, -3}, HostVector<double>{4, 0.5});
  EXPECT_EQ(project_diagonal(to_dense<double, 2>(q)), q);
}

TEST(DiagonalProjection, MinimisesTheDivergenceFromTheTilted) {
  const P p = example();
  const Q best = project_diagonal(p);
  const HostVector<double> center = mean(best);
  const HostVector<double> lambda = best.lambda_full();
  const double least = kl_to_diagonal(p, best);
  for (const double step : {-0.01, 0.01}) {
    for (std::size_t i = 0; i < 2; ++i) {
      HostVector<double> moved = center;
      moved[i] += step;
      EXPECT_GT(kl_to_diagonal(p, from_mean(moved, lambda)), least);
      HostVector<double> sharper = lambda;
      sharper[i] += step;
      EXPECT_GT(kl_to_diagonal(p, from_mean(center, sharper)), least);
    }
  }
}

TEST(ScaledIdentityProjection, GivesEveryFactorTheSamePrecision) {
  const Q isotropic(HostVector<double>{0.3, -1}, 2.5);
  const Q from_scalar = project_scaled_identity(exact_tilted(isotropic, example()), isotropic, 0.5);
  EXPECT_TRUE(from_scalar.isotropic());
  EXPECT_EQ(quotient(from_scalar, isotropic).lambda_scalar(), 0.5);

  const Q diagonal(HostVector<double>{0.3, -1}, HostVector<double>{2.5, 0.25});
  const Q from_vector = project_scaled_identity(exact_tilted(diagonal, example()), diagonal, 0.5);
  EXPECT_EQ(quotient(from_vector, diagonal).lambda_vector(), (HostVector<double>{0.5, 0.5}));
}

TEST(Projections, KeepTheTiltedMean) {
  const P tilted = exact_tilted(unit_cavity(), example());
  for (const auto projection : {Projection::diagonal, Projection::scaled_identity}) {
    const auto center = mean(project(tilted, unit_cavity(), projection));
    EXPECT_NEAR(center[0], mean(tilted)[0], 1e-15);
    EXPECT_NEAR(center[1], mean(tilted)[1], 1e-15);
  }
}

// By hand: the tilted precision is [[3, 1], [1, 3]], its covariance [[3, -1], [-1, 3]] / 8, its
// mean (9, -3) / 8.
TEST(ExactTilted, AndItsProjectionsHaveTheValuesWorkedOutByHand) {
  const P tilted = exact_tilted(unit_cavity(), example());
  EXPECT_EQ(tilted.lambda(0, 0), 3);
  EXPECT_EQ(tilted.lambda(0, 1), 1);
  const Q diagonal = project_diagonal(tilted);
  EXPECT_NEAR(diagonal.lambda_vector()[0], 8.0 / 3, 1e-15);
  EXPECT_NEAR(diagonal.lambda_vector()[1], 8.0 / 3, 1e-15);
  EXPECT_NEAR(diagonal.eta()[0], 3, 1e-15);
  EXPECT_NEAR(diagonal.eta()[1], -1, 1e-15);
  const Q identity = project_scaled_identity(tilted, unit_cavity());
  EXPECT_EQ(identity.lambda_scalar(), 2);
  EXPECT_NEAR(identity.eta()[0], 9.0 / 4, 1e-15);
  EXPECT_NEAR(identity.eta()[1], -3.0 / 4, 1e-15);
}

TEST(ExactTilted, IsTheSameWhetherTheDimensionIsInTheTypeOrNot) {
  const DenseGaussian<double> dynamic{example().eta, example().lambda};
  const Q fixed_q = project_diagonal(exact_tilted(unit_cavity(), example()));
  const Q dynamic_q = project_diagonal(exact_tilted(unit_cavity(), dynamic));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(fixed_q.eta()[i], dynamic_q.eta()[i], 1e-14);
    EXPECT_NEAR(fixed_q.lambda_vector()[i], dynamic_q.lambda_vector()[i], 1e-14);
  }
}

TEST(ExactTilted, TakesAnImproperCavityWhoseProductIsProper) {
  const Q negative(HostVector<double>{0, 0}, -0.5);
  EXPECT_TRUE(is_proper(exact_tilted(negative, example())));
}

TEST(ExactTilted, RefusesACavityThatLeavesNoDistribution) {
  const Q negative(HostVector<double>{0, 0}, -1.5);  // the smallest eigenvalue of example() is 1
  EXPECT_THROW(exact_tilted(negative, example()), InputError);
  const Q nan(HostVector<double>{NAN, 0}, 1.0);
  EXPECT_THROW(exact_tilted(nan, example()), InputError);
}

TEST(ExactTilted, RefusesACavityOfAnotherSize) {
  EXPECT_THROW(exact_tilted(Q(HostVector<double>{0, 0, 0}, 1.0), example()), InputError);
}

TEST(ScaledIdentityProjection, RefusesAPrecisionThatIsNotPositive) {
  EXPECT_THROW(project_scaled_identity(example(), unit_cavity(), 0.0), InputError);
}

}  // namespace
}  // namespace fedep
