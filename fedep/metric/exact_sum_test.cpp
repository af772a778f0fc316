#include "fedep/metric/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

ExactSum sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum;
}

// Terms of all magnitudes and both signs, whose plain sum depends on the order.
std::vector<double> wild_terms(std::mt19937_64& random, int count) {
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    const double mantissa = static_cast<double>(static_cast<std::int64_t>(random()) >> 11);
    terms.push_back(std::ldexp(mantissa, static_cast<int>(random() % 200) - 100));
  }
  return terms;
}

TEST(ExactSum, IsTheSameInAnyOrderAndHoweverItIsSplit) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> terms = wild_terms(random, 50);
    const double expected = sum_of(terms).value();
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(sum_of(terms).value(), expected);

    const auto cut = terms.begin() + static_cast<std::ptrdiff_t>(random() % terms.size());
    ExactSum merged = sum_of({terms.begin(), cut});
    merged.add(sum_of({cut, terms.end()}));
    EXPECT_EQ(merged.value(), expected);
  }
}

TEST(ExactSum, CancelsExactly) {
  std::mt19937_64 random(2);
  std::vector<double> terms = wild_terms(random, 100);
  for (int i = 0; i < 100; ++i) terms.push_back(-terms[static_cast<std::size_t>(i)]);
  terms.push_back(0.1);
  std::shuffle(terms.begin(), terms.end(), random);
  EXPECT_EQ(sum_of(terms).value(), 0.1);
}

TEST(ExactSum, AgreesWithIntegers) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> terms;
    std::int64_t expected = 0;
    for (int i = 0; i < 64; ++i) {
      const std::int64_t term =
          static_cast<std::int64_t>(random()) >> 8;                   // below 2^55, sum below 2^61
      terms.push_back(static_cast<double>(term & ~std::int64_t{7}));  // and exact as a double
      expected += term & ~std::int64_t{7};
    }
    EXPECT_EQ(sum_of(terms).value(), static_cast<double>(expected));
  }
}

TEST(ExactSum, RoundsOnceAndToTheNearest) {
  EXPECT_EQ(sum_of({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).value(), 1.0);
  EXPECT_EQ(sum_of({1.0, 0x1p-53}).value(), 1.0);                      // a tie goes to even
  EXPECT_EQ(sum_of({1.0, 0x1p-53, 0x1p-110}).value(), 1.0 + 0x1p-52);  // just more than a tie
  EXPECT_EQ(sum_of({1.0, 0x1p-53, -0x1p-110}).value(), 1.0);           // just less
  EXPECT_EQ(sum_of({1e300, 1.0, -1e300}).value(), 1.0);
}

TEST(ExactSum, OfNothingIsZero) {
  EXPECT_EQ(ExactSum().value(), 0.0);
  EXPECT_EQ(sum_of({0.0, -0.0}).value(), 0.0);
}

TEST(ExactSum, CanBeAddedToItself) {
  ExactSum sum = sum_of({1e100, 1.0, 1e-100});
  sum.add(sum);
  sum.add(-2e100);
  EXPECT_EQ(sum.value(), 2.0);
}

TEST(ExactSum, LetsWhatIsNotFiniteThrough) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::nan(""), 2.0}).value()));
  EXPECT_EQ(sum_of({1.0, kInfinity, 2.0}).value(), kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity}).value()));
  EXPECT_EQ(sum_of({1.7e308, 1.7e308, 1.0}).value(), kInfinity);
  ExactSum merged = sum_of({1.0});
  merged.add(sum_of({std::nan("")}));
  EXPECT_TRUE(std::isnan(merged.value()));
}

}  // namespace
}  // namespace fedep
