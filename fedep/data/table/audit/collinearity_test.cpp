#include "fedep/data/table/audit/collinearity.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

// Rows of two columns with correlation r, and a third that has nothing to do with them.
CrossProducts correlated(double r, std::uint64_t seed = 1, std::size_t rows = 4000) {
  Stream stream({.seed = seed, .purpose = Purpose::partition});
  CrossProducts out(3);
  for (std::size_t i = 0; i < rows; ++i) {
    const double x = stream.normal(), y = stream.normal(), z = stream.normal();
    const std::vector<float> row{float(5 + x), float(r * x + std::sqrt(1 - r * r) * y), float(z)};
    out.add(row);
  }
  return out;
}

double correlation(const CrossProducts& all, std::size_t i, std::size_t j) {
  return all.around_means(i, j) / std::sqrt(all.around_means(i, i) * all.around_means(j, j));
}

TEST(VarianceInflation, OfTwoColumnsIsOneOverOneMinusTheirSquaredCorrelation) {
  for (const double r : {0.0, 0.5, 0.9, 0.99}) {
    const CrossProducts two = correlated(r).first(2);
    const double own = correlation(two, 0, 1);
    const VarianceInflation found = variance_inflation(two);
    EXPECT_NEAR(found.factors[0] * (1 - own * own), 1, 1e-9);
    EXPECT_NEAR(found.factors[1] * (1 - own * own), 1, 1e-9);
    EXPECT_TRUE(found.exact.empty());
  }
}

// R² of a column on two that are uncorrelated with each other is the sum of their squared correlations.
TEST(VarianceInflation, OfThreeColumnsIsThatOfTheRegressionOnBothOthers) {
  CrossProducts all(3);
  for (int i = 0; i < 4; ++i) {  // orthogonal by design
    const float a = i & 1 ? 1 : -1, b = i & 2 ? 1 : -1;
    for (const float noise : {-1.f, 1.f}) {
      const std::vector<float> row{a, b, 2 * a + b + 0.5f * noise};
      all.add(row);
    }
  }
  const double explained = 5.0 / 5.25;
  EXPECT_NEAR(variance_inflation(all).factors[2], 1 / (1 - explained), 1e-9);
}

TEST(VarianceInflation, DoesNotDependOnWhoHasWhichRowsNorOnUnits) {
  CrossProducts parts = correlated(0.8, 1, 900);
  parts.add(correlated(0.8, 2, 300));
  CrossProducts scaled(3), plain(3);
  for (const std::uint64_t seed : {1, 2}) {
    Stream stream({.seed = seed, .purpose = Purpose::partition});
    for (std::size_t i = 0; i < (seed == 1 ? 900u : 300u); ++i) {
      const double x = stream.normal(), y = stream.normal(), z = stream.normal();
      std::vector<float> row{float(5 + x), float(0.8 * x + 0.6 * y), float(z)};
      plain.add(row);
      row[0] *= 1024;
      row[2] /= 64;
      scaled.add(row);
    }
  }
  for (std::size_t j = 0; j < 3; ++j) {
    const double factor = variance_inflation(parts).factors[j];
    EXPECT_NEAR(variance_inflation(plain).factors[j], factor, 1e-9);
    EXPECT_NEAR(variance_inflation(scaled).factors[j], factor, 1e-9);
  }
}

TEST(VarianceInflation, NamesWhatAColumnFollowsFrom) {
  Stream stream({.seed = 3, .purpose = Purpose::partition});
  CrossProducts all(5);
  for (int i = 0; i < 200; ++i) {
    const auto a = float(stream.normal()), b = float(stream.normal()), c = float(stream.normal());
    const std::vector<float> row{a, b, 7, c, a - 2 * c};
    all.add(row);
  }
  const VarianceInflation found = variance_inflation(all);
  EXPECT_EQ(found.exact, (std::vector<ExactDependence>{{.column = 4, .others = {0, 3}}}));
  EXPECT_EQ(found.factors[0], std::numeric_limits<double>::infinity());
  EXPECT_NEAR(found.factors[1], 1, 0.1);
  EXPECT_TRUE(std::isnan(found.factors[2])) << "a column that does not vary";
  EXPECT_EQ(found.factors[4], std::numeric_limits<double>::infinity());
}

TEST(VarianceInflation, OfNothingIsNothing) {
  EXPECT_TRUE(variance_inflation(CrossProducts(0)).factors.empty());
  EXPECT_TRUE(std::isnan(variance_inflation(CrossProducts(1)).factors[0]));
}

}  // namespace
}  // namespace fedep
