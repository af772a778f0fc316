#include "fedep/data/made_up/regression.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

struct Rows {
  Eigen::MatrixXd x;
  Eigen::VectorXd y;
};

Rows training(const Dataset& data, std::size_t client) {
  const Batch batch = training_batch(data, client);
  const auto d = Eigen::Index(data.info().feature_count());
  Rows out{Eigen::MatrixXd(Eigen::Index(batch.size), d), Eigen::VectorXd(Eigen::Index(batch.size))};
  for (Eigen::Index i = 0; i < out.x.rows(); ++i) {
    for (Eigen::Index j = 0; j < d; ++j) out.x(i, j) = double(batch.dense[std::size_t(i * d + j)]);
    out.y(i) = double(batch.reals[std::size_t(i)]);
  }
  return out;
}

const DataSettings kSettings{.name = "regression", .clients = 8, .dimension = 5, .examples = 400};

// Least squares is N(w, (X'X)^-1): every coordinate within four standard deviations, and the
// residuals' variance one.
TEST(Regression, EveryClientTellsTheSameWeightsWithUnitNoise) {
  const auto data = open_regression(kSettings, 1);
  const std::vector<double> truth = regression_weights(kSettings, 1);
  for (std::size_t k = 0; k < 8; ++k) {
    const Rows rows = training(*data, k);
    const Eigen::MatrixXd precision = rows.x.transpose() * rows.x;
    const Eigen::MatrixXd covariance = precision.inverse();
    const Eigen::VectorXd w = covariance * (rows.x.transpose() * rows.y);
    for (Eigen::Index j = 0; j < 5; ++j) {
      EXPECT_LT(std::abs(w(j) - truth[std::size_t(j)]), 4 * std::sqrt(covariance(j, j)));
    }
    const double n = double(rows.y.size());
    const double noise = (rows.y - rows.x * w).squaredNorm() / (n - 5);
    EXPECT_NEAR(noise, 1, 4 * std::sqrt(2 / n));
  }
}

TEST(Regression, ClientsHaveDifferentScalesAndSizes) {
  const auto data = open_regression(kSettings, 1);
  double smallest = 1e9, largest = 0;
  for (std::size_t k = 0; k < 8; ++k) {
    const Rows rows = training(*data, k);
    const double scale = rows.x.norm() / std::sqrt(double(rows.x.size()));
    smallest = std::min(smallest, scale);
    largest = std::max(largest, scale);
    EXPECT_GE(rows.y.size(), 160);
    EXPECT_LE(rows.y.size(), 480);
  }
  EXPECT_GT(largest / smallest, 1.3);
  EXPECT_NE(data->clients()[0].second, data->clients()[1].second);
}

TEST(Regression, ASeedRepeatsAndMoreClientsLeaveTheFirstAsTheyAre) {
  DataSettings more = kSettings;
  more.clients = 12;
  const auto few = open_regression(kSettings, 1), many = open_regression(more, 1);
  EXPECT_EQ(training(*few, 7).y, training(*many, 7).y);
  EXPECT_NE(training(*few, 0).y(0), training(*open_regression(kSettings, 2), 0).y(0));
}

TEST(Regression, IsARealTargetWithATestSet) {
  const auto data = open_regression(kSettings, 1);
  EXPECT_EQ(data->info().target, TargetKind::real);
  EXPECT_EQ(data->info().outputs, 1u);
  EXPECT_EQ(data->test_clients().size(), 8u);
  EXPECT_EQ(test_batch(*data).reals.size(), data->test_size());
  EXPECT_THROW(open_regression({.clients = 0}, 1), InputError);
}

}  // namespace
}  // namespace fedep
