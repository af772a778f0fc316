// Products, factors and inverses over BLAS against Eigen's, at sizes within a block and beyond.
#include "fedep/inference/rows/symmetric_matrix.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

std::vector<double> normals(std::size_t n) {
  Stream stream({.seed = 2, .purpose = Purpose::test, .step = std::uint32_t(n)});
  std::vector<double> out(n);
  for (double& x : out) x = stream.normal();
  return out;
}

class SymmetricMatrix : public ::testing::TestWithParam<int> {
 protected:
  int d() const { return GetParam(); }
  Eigen::MatrixXd positive() const {
    Eigen::MatrixXd a = Eigen::MatrixXd::Identity(d(), d());
    add_gram(normals(std::size_t(2 * d() * d())), std::vector<double>(std::size_t(2 * d()), 1.0),
             a);
    mirror(a);
    return a;
  }
};

TEST_P(SymmetricMatrix, AGramIsTheSumOfItsRowsProducts) {
  const std::size_t n = 300;
  const std::vector<double> x = normals(n * std::size_t(d()));
  std::vector<double> weights = normals(n);
  weights[7] = 0;
  Eigen::MatrixXd a = Eigen::MatrixXd::Identity(d(), d()), expected = a;
  add_gram(x, weights, a);
  mirror(a);
  const Eigen::Map<const Eigen::MatrixXd> columns(x.data(), d(), Eigen::Index(n));
  expected += columns * Eigen::Map<const Eigen::VectorXd>(weights.data(), n).asDiagonal() *
              columns.transpose();
  EXPECT_LT((a - expected).norm(), 1e-11 * expected.norm());
}

TEST_P(SymmetricMatrix, AFactorTimesItsTransposeIsTheMatrix) {
  const Eigen::MatrixXd a = positive();
  Eigen::MatrixXd factor = a;
  ASSERT_TRUE(factorise(factor));
  const Eigen::MatrixXd lower = factor.triangularView<Eigen::Lower>();
  EXPECT_LT((lower * lower.transpose() - a).norm(), 1e-13 * a.norm());
  EXPECT_LT((inverse(factor) * a - Eigen::MatrixXd::Identity(d(), d())).norm(), 1e-10);
  const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(d(), -1, 2);
  EXPECT_LT((a * solve(factor, b) - b).norm(), 1e-11 * (1 + b.norm()));
  EXPECT_NEAR(log_determinant(factor), a.ldlt().vectorD().array().log().sum(), 1e-9 * d());
}

TEST_P(SymmetricMatrix, WhatIsNotPositiveDefiniteHasNoFactor) {
  Eigen::MatrixXd a = positive();
  a(d() - 1, d() - 1) = -1;
  EXPECT_FALSE(factorise(a));
  a = positive();
  a(d() / 2, d() / 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(factorise(a));
  a = positive();
  a(0, 0) = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(factorise(a));
}

INSTANTIATE_TEST_SUITE_P(Sizes, SymmetricMatrix, ::testing::Values(1, 2, 63, 64, 65, 200));

}  // namespace
}  // namespace fedep
