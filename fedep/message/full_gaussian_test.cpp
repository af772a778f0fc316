// The full family: its matrix is packed, its means and covariances are those of the dense one.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/message/dense_gaussian.h"
#include "fedep/message/gaussian.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<double>;
using Q = Gaussian<V>;
using Dense = DenseGaussian<double>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A matrix of smallest eigenvalue `least`, and an eta.
Dense random_dense(Eigen::Index d, std::uint32_t step, double least = 0.5) {
  Stream stream({.seed = 3, .step = step});
  Eigen::MatrixXd a(d, d);
  Eigen::VectorXd eta(d);
  for (Eigen::Index i = 0; i < d; ++i) {
    eta[i] = stream.normal();
    for (Eigen::Index j = 0; j < d; ++j) a(i, j) = stream.normal();
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(a * a.transpose());
  const Eigen::VectorXd shifted =
      (solver.eigenvalues().array() - solver.eigenvalues()[0] + least).matrix();
  return {eta, solver.eigenvectors() * shifted.asDiagonal() * solver.eigenvectors().transpose()};
}
Q random_full(std::size_t d, std::uint32_t step, double least = 0.5) {
  return to_message<double>(random_dense(Eigen::Index(d), step, least));
}
Q random_of(Family family, std::uint32_t step) {
  const Q full = random_full(5, step);
  V diagonal(5);
  for (std::size_t i = 0; i < 5; ++i) {
    diagonal[i] = full.lambda_packed().elements[packed_index(i, i)];
  }
  if (family == Family::isotropic) return {full.eta(), diagonal[0]};
  return family == Family::diagonal ? Q(full.eta(), diagonal) : full;
}

void expect_near(const Q& a, const Q& b, double tolerance = 1e-12) {
  const Dense x = to_dense<double>(a), y = to_dense<double>(b);
  EXPECT_LE((x.eta - y.eta).cwiseAbs().maxCoeff(), tolerance);
  EXPECT_LE((x.lambda - y.lambda).cwiseAbs().maxCoeff(), tolerance);
}

TEST(Packed, HoldsTheLowerTriangleRowByRow) {
  const Q q = to_message<double>(Dense{Eigen::Vector3d(1, 2, 3), (Eigen::Matrix3d() << 1, 2, 4,  //
                                                                  2, 3, 5,                       //
                                                                  4, 5, 6)
                                                                     .finished()});
  EXPECT_EQ(q.lambda_packed().elements, (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(q.lambda_packed().elements[packed_index(2, 1)], 5);
  EXPECT_EQ(to_dense<double>(q).lambda(1, 2), 5);
}

class WithAnyFamily : public testing::TestWithParam<Family> {
 protected:
  Q a = random_full(5, 1), b = random_of(GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Families, WithAnyFamily,
                         testing::Values(Family::isotropic, Family::diagonal, Family::full));

TEST_P(WithAnyFamily, ProductsAreThoseOfDenseGaussians) {
  const Dense expected = product(to_dense<double>(a), to_dense<double>(b));
  EXPECT_TRUE(product(a, b).full());
  expect_near(product(a, b), to_message<double>(expected));
  expect_near(product(b, a), to_message<double>(expected), 0);
  expect_near(quotient(product(a, b), b), a);
}

TEST_P(WithAnyFamily, WrittenOutItIsTheSameDistribution) {
  const Q full = in_family(b, Family::full);
  ASSERT_TRUE(full.full());
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(mean(full)[i], mean(b)[i], 1e-12);
    EXPECT_NEAR(variance(full)[i], variance(b)[i], 1e-12);
  }
  EXPECT_NEAR(entropy(full), entropy(b), 1e-12);
  EXPECT_NEAR(kl(full, b), 0, 1e-12);
  EXPECT_NEAR(kl(a, b), kl(a, full), 1e-12);
}

TEST(FullGaussian, HasTheDenseOnesMoments) {
  for (const std::size_t d : {1u, 2u, 7u, 40u}) {
    const Q q = random_full(d, std::uint32_t(d));
    const Dense dense = to_dense<double>(q);
    const Eigen::MatrixXd sigma = covariance(dense);
    for (std::size_t i = 0; i < d; ++i) {
      EXPECT_NEAR(mean(q)[i], mean(dense)[Eigen::Index(i)], 1e-9);
      EXPECT_NEAR(variance(q)[i], sigma(Eigen::Index(i), Eigen::Index(i)), 1e-9);
    }
  }
}

TEST(FullGaussian, KlIsTheDefinitions) {
  const Q q = random_full(4, 8), p = random_full(4, 9);
  const Dense a = to_dense<double>(q), b = to_dense<double>(p);
  const Eigen::VectorXd gap = mean(a) - mean(b);
  const double expected =
      0.5 * ((b.lambda * covariance(a)).trace() - 4 +
             std::log(a.lambda.determinant() / b.lambda.determinant()) + gap.dot(b.lambda * gap));
  EXPECT_NEAR(kl(q, p), expected, 1e-10);
  EXPECT_NEAR(power(q, 0.25).lambda_packed().elements[3], 0.25 * q.lambda_packed().elements[3],
              1e-15);
}

TEST(FullGaussian, DrawsHaveItsCovariance) {
  const Q q = random_full(3, 5);
  const Eigen::MatrixXd expected = covariance(to_dense<double>(q));
  Eigen::MatrixXd columns(3, 3);  // of L⁻ᵀ
  for (std::size_t j = 0; j < 3; ++j) {
    V unit(3);
    unit[j] = 1;
    const V moved = sample(q, unit) - mean(q);
    for (std::size_t i = 0; i < 3; ++i) columns(Eigen::Index(i), Eigen::Index(j)) = moved[i];
  }
  EXPECT_LE((columns * columns.transpose() - expected).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(FullGaussian, IsProperOnlyWhereEveryDirectionIs) {
  const Q indefinite({1, 1}, Packed<V>{{1, 2, 1}});  // positive on its diagonal
  EXPECT_FALSE(is_proper(indefinite));
  EXPECT_NEAR(min_precision(indefinite), -1, 1e-12);
  EXPECT_THROW(mean(indefinite), InputError);
  EXPECT_THROW(variance(indefinite), InputError);
  EXPECT_EQ(count_not_positive(indefinite.lambda_packed(), 2), 1u);
  EXPECT_EQ(count_not_positive(Packed<V>{{-1, 0, -1}}, 2), 2u);
  EXPECT_EQ(count_not_positive(Packed<V>{{0, 0, 1}}, 2), 1u);  // flat
  EXPECT_EQ(count_not_positive(Packed<V>{{1, kNaN, 1}}, 2), 2u);
  EXPECT_FALSE(is_proper(Q({1, 1}, Packed<V>{{1, kNaN, 1}})));
  EXPECT_FALSE(is_proper(Q({kNaN, 1}, Packed<V>{{1, 0, 1}})));
  EXPECT_FALSE(is_proper(flat_like(V(3), Family::full)));
  EXPECT_TRUE(is_positive_definite(Packed<V>{{2, 0, 3}}, 2, 1.9));
  EXPECT_FALSE(is_positive_definite(Packed<V>{{2, 0, 3}}, 2, 2.1));
}

TEST(FullGaussian, RefusesAMatrixOfAnotherSize) {
  EXPECT_THROW(Q({1, 1}, Packed<V>{{1, 2}}), InputError);
  EXPECT_THROW(in_family(random_full(2, 1), Family::diagonal), InputError);
}

TEST(ConditionNumber, IsTheRatioOfEigenvaluesToAPercent) {
  for (const double least : {1e-6, 1e-2, 1.0}) {
    const Dense q = random_dense(30, 4, least);
    const Eigen::VectorXd values = q.lambda.selfadjointView<Eigen::Lower>().eigenvalues();
    const double expected = values.maxCoeff() / values.minCoeff();
    const double found = condition_number(to_message<double>(q).lambda_packed(), 30);
    EXPECT_NEAR(found / expected, 1, 0.01) << least;
  }
  EXPECT_EQ(condition_number(Packed<V>{{1, 2, 1}}, 2), HUGE_VAL);
}

TEST(RaiseEigenvalues, KeepsWhatIsAboveTheFloorAndMeansThatExist) {
  // Eigenvalues 4, 0.01 and -2 along random axes, with means 1, 2 and 3 there.
  const Dense axes_of = random_dense(3, 6);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(axes_of.lambda);
  const Eigen::Matrix3d axes = solver.eigenvectors();
  const Eigen::Vector3d values(4, 0.01, -2), means(1, 2, 3), before(-5, -6, -7);
  Q q = to_message<double>(
      Dense{axes * values.cwiseProduct(means), axes * values.asDiagonal() * axes.transpose()});
  const Eigen::Vector3d at = axes * before;
  raise_eigenvalues(q.eta(), q.lambda_packed(), V{at[0], at[1], at[2]}, 0.1);
  const Dense raised = to_dense<double>(q);
  const Eigen::Vector3d now = axes.transpose() * raised.lambda * axes.col(0);
  EXPECT_NEAR(now[0], 4, 1e-12);
  EXPECT_NEAR(min_precision(q), 0.1, 1e-12);
  const Eigen::Vector3d mean_now = axes.transpose() * mean(raised);
  EXPECT_NEAR(mean_now[0], 1, 1e-12);
  EXPECT_NEAR(mean_now[1], 2, 1e-12);
  EXPECT_NEAR(mean_now[2], -7, 1e-12);
}

TEST(RaiseEigenvalues, EndsPositiveDefiniteThoughElementsAreRounded) {
  Dense q = random_dense(20, 7, 0.0);
  q.lambda *= 1e8;
  q.lambda -= Eigen::MatrixXd::Identity(20, 20);
  Message message = to_message<float>(q);
  raise_eigenvalues(message.eta(), message.lambda_packed(), HostVector<float>(20), 1e-6);
  EXPECT_TRUE(is_proper(message));
  EXPECT_TRUE(is_positive_definite(message.lambda_packed(), 20, 5e-7));
}

TEST(RaiseEigenvalues, LeavesAMatrixAboveTheFloorAlone) {
  Q q = random_full(6, 3);
  const Q before = q;
  raise_eigenvalues(q.eta(), q.lambda_packed(), V(6), 0.1);
  EXPECT_EQ(q, before);
}

TEST(StationaryPoint, IsTheMeanWhereThereIsOneAndElsewhereWhereLambdaIsFlat) {
  const Q q = random_full(4, 2);
  const V point = stationary_point(q.lambda_packed(), q.eta(), V(4, 9));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(point[i], mean(q)[i], 1e-10);
  EXPECT_EQ(stationary_point(Packed<V>{{0, 0, -2}}, V{0, 6}, V{7, 8}), (V{7, -3}));
}

}  // namespace
}  // namespace fedep
