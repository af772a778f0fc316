#include "fedep/data/made_up/toy.h"

#include <cmath>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

Stream stream_of(std::uint64_t seed) {
  return Stream(Address{.seed = seed, .purpose = Purpose::test});
}

MatrixXd psi_of_three() {
  MatrixXd psi(3, 3);
  psi << 2, 0.5, -0.3, 0.5, 1, 0.2, -0.3, 0.2, 0.7;
  return psi;
}

TEST(ToyClients, DependOnTheirAddressAlone) {
  const auto two = sample_toy_clients(paper_toy_prior(), {.seed = 5, .trial = 3, .clients = 2});
  const auto nine = sample_toy_clients(paper_toy_prior(), {.seed = 5, .trial = 3, .clients = 9});
  ASSERT_EQ(two.size(), 2u);
  ASSERT_EQ(nine.size(), 9u);
  for (std::size_t k = 0; k < two.size(); ++k) {
    EXPECT_EQ(two[k].mean, nine[k].mean);
    EXPECT_EQ(two[k].covariance, nine[k].covariance);
  }
}

TEST(ToyClients, DifferBetweenSeedsTrialsAndClients) {
  const auto base = sample_toy_clients(paper_toy_prior(), {.seed = 5, .trial = 3});
  EXPECT_NE(base[0].mean, base[1].mean);
  EXPECT_NE(base[0].mean, sample_toy_clients(paper_toy_prior(), {.seed = 5, .trial = 4})[0].mean);
  EXPECT_NE(base[0].mean, sample_toy_clients(paper_toy_prior(), {.seed = 6, .trial = 3})[0].mean);
}

TEST(ToyClients, OfThePapersTextHaveTheCovarianceOfItsCodeTimesTheScale) {
  ToyPrior text = paper_toy_prior();
  text.client_covariance = ClientCovariance::unscaled;
  const auto scaled = sample_toy_clients(paper_toy_prior(), {.seed = 2});
  const auto unscaled = sample_toy_clients(text, {.seed = 2});
  EXPECT_EQ(scaled[1].mean, unscaled[1].mean);
  EXPECT_TRUE(scaled[1].covariance.isApprox(unscaled[1].covariance / 0.2, 1e-14));
}

// mu ~ N(0, Sigma) with the client's own Sigma: whitened by it, means are standard normal.
TEST(ToyClients, HaveMeansOfTheirOwnCovariance) {
  const int draws = 4000, d = 3;
  VectorXd sum = VectorXd::Zero(d);
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const auto client =
        sample_toy_clients(toy_prior(d), {.seed = 9, .trial = std::uint32_t(i), .clients = 1})[0];
    const VectorXd z = client.covariance.llt().matrixL().solve(client.mean);
    sum += z;
    squares += z.squaredNorm();
  }
  EXPECT_LT((sum / draws).norm(), 4 * std::sqrt(double(d) / draws));
  EXPECT_NEAR(squares / draws, d, 4 * std::sqrt(2.0 * d / draws));
}

// E[Sigma] = psi / (nu - d - 1),  Var[Sigma_ii] = 2 psi_ii² / ((nu - d - 1)² (nu - d - 3)).
TEST(InverseWishart, HasItsMeanAndVariance) {
  const int draws = 20000, degrees = 16, d = 3;
  const MatrixXd psi = psi_of_three();
  Stream stream = stream_of(1);
  MatrixXd sum = MatrixXd::Zero(d, d), squares = MatrixXd::Zero(d, d);
  for (int i = 0; i < draws; ++i) {
    const MatrixXd sigma = sample_inverse_wishart(psi, degrees, stream);
    sum += sigma;
    squares += sigma.cwiseProduct(sigma);
  }
  const MatrixXd mean = sum / draws;
  const MatrixXd variance = squares / draws - mean.cwiseProduct(mean);
  const double m = degrees - d - 1;
  for (int i = 0; i < d; ++i) {
    for (int j = 0; j < d; ++j) {
      EXPECT_NEAR(mean(i, j), psi(i, j) / m, 4.5 * std::sqrt(variance(i, j) / draws));
    }
    EXPECT_NEAR(variance(i, i) / (2 * psi(i, i) * psi(i, i) / (m * m * (m - 2))), 1, 0.1);
  }
}

// The inverse of a draw is Wishart: E[Sigma⁻¹] = nu psi⁻¹, here at the paper's own setting.
TEST(InverseWishart, HasAWishartInverse) {
  const int draws = 20000;
  const ToyPrior prior = paper_toy_prior();
  Stream stream = stream_of(2);
  MatrixXd sum = MatrixXd::Zero(2, 2);
  for (int i = 0; i < draws; ++i) {
    sum += sample_inverse_wishart(prior.psi, prior.degrees, stream).inverse();
  }
  const MatrixXd expected = prior.degrees * prior.psi.inverse();
  EXPECT_LT((sum / draws - expected).norm(), 0.02 * expected.norm());
}

TEST(InverseWishart, IsSymmetricAndPositiveDefinite) {
  Stream stream = stream_of(3);
  for (const int d : {1, 2, 5, 20}) {
    const ToyPrior prior = toy_prior(d);
    const MatrixXd sigma = sample_inverse_wishart(prior.psi, prior.degrees, stream);
    EXPECT_EQ(sigma.rows(), d);
    EXPECT_TRUE(sigma.isApprox(sigma.transpose(), 1e-14));
    EXPECT_EQ(sigma.llt().info(), Eigen::Success);
  }
}

TEST(InverseWishart, RefusesWhatIsNoScaleMatrix) {
  Stream stream = stream_of(4);
  MatrixXd lopsided = MatrixXd::Identity(2, 2);
  lopsided(0, 1) = 0.5;
  EXPECT_THROW(sample_inverse_wishart(lopsided, 7, stream), InputError);
  EXPECT_THROW(sample_inverse_wishart(-MatrixXd::Identity(2, 2), 7, stream), InputError);
  EXPECT_THROW(sample_inverse_wishart(MatrixXd::Ones(2, 3), 7, stream), InputError);
  EXPECT_THROW(sample_inverse_wishart(MatrixXd(0, 0), 7, stream), InputError);
  EXPECT_THROW(sample_inverse_wishart(MatrixXd::Constant(1, 1, NAN), 7, stream), InputError);
  EXPECT_THROW(sample_inverse_wishart(MatrixXd::Identity(3, 3), 2, stream), InputError);
}

TEST(ToyPriors, RefuseAScaleOrDimensionThatIsNotPositive) {
  ToyPrior prior = paper_toy_prior();
  prior.scale = 0;
  EXPECT_THROW(sample_toy_clients(prior, {}), InputError);
  EXPECT_THROW(toy_prior(0), InputError);
}

TEST(ToyPriors, ThePapersHasSevenDegreesAndScaleOneFifth) {
  const ToyPrior prior = paper_toy_prior();
  EXPECT_EQ(prior.degrees, 7);
  EXPECT_EQ(prior.scale, 0.2);
  EXPECT_EQ(prior.psi(0, 0), 2.540866);
  EXPECT_EQ(prior.psi(0, 1), -0.011282);
  EXPECT_EQ(prior.psi(1, 1), 0.528683);
  EXPECT_EQ(toy_prior(2).degrees, prior.degrees);
}

TEST(ToyLikelihood, HasTheClientsMoments) {
  const auto client = illustration_toy_clients()[0];
  const auto p = toy_likelihood<double, 2>(client);
  EXPECT_TRUE(mean(p).isApprox(client.mean, 1e-12));
  EXPECT_TRUE(covariance(p).isApprox(client.covariance, 1e-12));
  const auto single = toy_likelihood<float>(client);
  EXPECT_TRUE(mean(single).cast<double>().isApprox(client.mean, 1e-4));
}

// Guo+23's code: mu_1 = 2 (3.5, -5.3), mu_2 = 2 (0.1, 1.12).
TEST(Illustration, HasThePapersTwoClients) {
  const auto clients = illustration_toy_clients();
  EXPECT_TRUE(clients[0].mean.isApprox(Eigen::Vector2d(7, -10.6)));
  EXPECT_TRUE(clients[1].mean.isApprox(Eigen::Vector2d(0.2, 2.24)));
  EXPECT_EQ(clients[0].covariance(0, 1), -5.3);
  EXPECT_EQ(clients[1].covariance(1, 1), 5.5);
}

}  // namespace
}  // namespace fedep
