#include "app/posterior/coefficients/information_shares.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

using Part = InformationShares::Part;

double sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

Message full(const Eigen::MatrixXd& lambda) {
  const Eigen::VectorXd eta = Eigen::VectorXd::Zero(lambda.rows());
  return to_message<float>(DenseGaussian<double>{eta, lambda});
}

// Λ of some rows of a regression, with correlated columns.
Eigen::MatrixXd rows_of(std::uint64_t seed, int rows, const Eigen::VectorXd& units) {
  Stream stream({.seed = seed});
  Eigen::MatrixXd x(rows, 4);
  for (int i = 0; i < rows; ++i) {
    const double common = stream.normal();
    for (int j = 0; j < 4; ++j) x(i, j) = units[j] * (common + stream.normal());
  }
  return x.transpose() * x;
}

std::vector<Part> three_parts(const Eigen::VectorXd& units = Eigen::VectorXd::Ones(4)) {
  const Eigen::MatrixXd prior = units.cwiseAbs2().asDiagonal();
  return {{"prior", full(prior)},
          {"a", full(rows_of(1, 40, units))},
          {"b", full(rows_of(2, 9, units))}};
}

std::vector<Combination> weights(std::size_t n) {
  std::vector<Combination> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back({{i, 1.0}});
  return out;
}

TEST(InformationShares, AddUpToOneAndAreNotNegative) {
  const InformationShares shares(three_parts());
  std::vector<Combination> what = weights(4);
  what.push_back({{0, 1.0}, {2, -1.0}});
  for (const std::vector<double>& one : shares.of_each(what)) {
    EXPECT_NEAR(sum(one), 1, 1e-12);
    EXPECT_THAT(one, Each(testing::Ge(0.0)));
  }
  EXPECT_NEAR(sum(shares.of_all(weights(4))), 1, 1e-12);
}

TEST(InformationShares, OfAllWeightsAreTheTraceOfTheQuotient) {
  const std::vector<Part> parts = three_parts();
  Eigen::MatrixXd total = Eigen::MatrixXd::Zero(4, 4);
  for (const Part& part : parts) total += in_double(part.factor).lambda;
  const std::vector<double> found = InformationShares(parts).of_all(weights(4));
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const double trace = (total.inverse() * in_double(parts[k].factor).lambda).trace();
    EXPECT_NEAR(found[k], trace / 4, 1e-9);
  }
}

TEST(InformationShares, DoNotDependOnTheColumnsUnits) {
  const InformationShares as_is(three_parts());
  const InformationShares other(three_parts(Eigen::Vector4d(12, 1e-2, 1, 3.5)));
  EXPECT_THAT(other.of_all(weights(4)), Pointwise(DoubleNear(1e-5), as_is.of_all(weights(4))));
  const auto before = as_is.of_each(weights(4)), after = other.of_each(weights(4));
  for (std::size_t j = 0; j < 4; ++j) EXPECT_THAT(after[j], Pointwise(DoubleNear(1e-5), before[j]));
}

TEST(InformationShares, OfDifferencesDoNotDependOnTheReference) {
  const InformationShares shares(three_parts());
  const std::vector<Combination> first{{{1, 1.0}, {0, -1.0}}, {{2, 1.0}, {0, -1.0}}};
  const std::vector<Combination> last{{{0, 1.0}, {2, -1.0}}, {{1, 1.0}, {2, -1.0}}};
  EXPECT_THAT(shares.of_all(first), Pointwise(DoubleNear(1e-10), shares.of_all(last)));
}

TEST(InformationShares, OfADiagonalFamilyAreThePrecisionsParts) {
  const InformationShares shares({{"prior", Message(HostVector<float>{0, 0}, 1.f)},
                                  {"a", {HostVector<float>{0, 0}, HostVector<float>{3, 1}}}});
  EXPECT_THAT(shares.of_each(weights(2))[0], ElementsAre(0.25, 0.75));
  EXPECT_THAT(shares.of_all(weights(2)),
              ElementsAre(DoubleNear(0.375, 1e-12), DoubleNear(0.625, 1e-12)));
}

TEST(InformationShares, OfNothingAreRefused) {
  EXPECT_THROW(InformationShares({{"prior", Message(HostVector<float>{0, 0}, 0.f)}}), InputError);
  EXPECT_THROW(InformationShares({{"prior", full(Eigen::MatrixXd::Zero(3, 3))}}), InputError);
}

TEST(InformationShares, OfARunAreByTheClientsNames) {
  for (const char* phase : {kFedEp, kFullFedEp}) {
    const TestRun run(phase);
    const SavedPosterior saved = read_posterior(run.path());
    const KeptShares kept = kept_shares(saved);
    EXPECT_EQ(kept.why_not, "");
    EXPECT_THAT(kept.shares.names(), ElementsAre("prior", "A", "B", "C"));
    EXPECT_LT(kept.shares.gap_to(saved.state.global), 1e-5);
    const std::vector<double> overall = kept.shares.of_all(weights(4));
    EXPECT_NEAR(sum(overall), 1, 1e-9);
    for (std::size_t k = 1; k < 4; ++k) EXPECT_NEAR(overall[k], 0.33, 0.1);  // 80 rows each
  }
}

TEST(InformationShares, OfARunWithoutNamesAreByKey) {
  const TestRun run(kFullFedEp);
  std::filesystem::remove(run.path() / "clients.json");
  const KeptShares kept = kept_shares(read_posterior(run.path()));
  EXPECT_THAT(kept.shares.names(), testing::SizeIs(4));
  EXPECT_THAT(kept.shares.names()[1], HasSubstr("client "));
}

TEST(InformationShares, ThatNobodyKnowsAreSaidToBeUnknown) {
  const TestRun stateless("algorithm = \"fed_sep\"\n");
  EXPECT_THAT(kept_shares(read_posterior(stateless.path())).why_not,
              HasSubstr("fed_sep keeps no factor"));
  const TestRun run(kFullFedEp);
  std::filesystem::remove_all(run.path() / "sites");
  EXPECT_THAT(kept_shares(read_posterior(run.path())).why_not, HasSubstr("no factors beside"));
  const TestRun estimate(kFedAvg);
  EXPECT_THAT(kept_shares(read_posterior(estimate.path())).shares.names(), testing::IsEmpty());
}

}  // namespace
}  // namespace fedep
