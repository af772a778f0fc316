#include "fedep/random/stream.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "fedep/random/box_muller.h"

namespace fedep {
namespace {

// The known-answer vectors that Salmon et al. publish with Random123 for philox4x32-10.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Stream, IsAFunctionOfItsAddress) {
  const Address base{.seed = 3, .purpose = Purpose::shuffle, .round = 4, .client = 5, .step = 6};
  const auto first = [](Address a) { return Stream(a).bits64(); };
  EXPECT_EQ(first(base), first(base));
  Address other = base;
  other.seed = 4;
  EXPECT_NE(first(base), first(other));
  other = base;
  other.purpose = Purpose::augment;
  EXPECT_NE(first(base), first(other));
  other = base;
  other.round = 5;
  EXPECT_NE(first(base), first(other));
  other = base;
  other.client = 6;
  EXPECT_NE(first(base), first(other));
  other = base;
  other.step = 7;
  EXPECT_NE(first(base), first(other));
}

TEST(Stream, ReadsItsBlocksInOrder) {
  Stream stream({.seed = 9});
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (const std::uint32_t word : stream.block(i)) EXPECT_EQ(stream.bits(), word);
  }
}

TEST(Stream, UniformsHaveTheRightMomentsAndStayInside) {
  Stream stream({.seed = 1});
  const int n = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

// Mean 0, variance 1, fourth moment 3, each within five standard errors.
void expect_standard_normal(const std::vector<double>& x) {
  const double n = double(x.size());
  double m1 = 0, m2 = 0, m4 = 0;
  for (const double v : x) {
    m1 += v / n;
    m2 += v * v / n;
    m4 += v * v * v * v / n;
  }
  EXPECT_NEAR(m1, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(m2, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m4, 3, 5 * std::sqrt(96 / n));
}

TEST(Stream, NormalsAreStandardNormal) {
  Stream stream({.seed = 2});
  std::vector<double> x(200000);
  for (double& v : x) v = stream.normal();
  expect_standard_normal(x);
}

TEST(Stream, NormalsSayNothingOfTheNext) {
  Stream stream({.seed = 2});
  const int n = 200000;
  double product = 0, of_squares = 0;  // Σ xy and Σ (x² - 1)(y² - 1), of variance 1 and 4 a term
  for (double x = stream.normal(), i = 0; i < n; ++i) {
    const double y = stream.normal();
    product += x * y;
    of_squares += (x * x - 1) * (y * y - 1);
    x = y;
  }
  EXPECT_NEAR(product / n, 0, 5 / std::sqrt(double(n)));
  EXPECT_NEAR(of_squares / n, 0, 5 * 2 / std::sqrt(double(n)));
}

// 2^64 is four thirds of this bound: remainders of plain words would be below 2^62 half of the time.
TEST(Stream, BelowABoundAllNumbersAreEquallyLikely) {
  Stream stream({.seed = 3});
  const std::uint64_t third = std::uint64_t(1) << 62;
  const int n = 30000;
  int low = 0;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t value = stream.below(3 * third);
    ASSERT_LT(value, 3 * third);
    low += value < third;
  }
  EXPECT_NEAR(low, n / 3.0, 5 * std::sqrt(n * 2.0 / 9));
}

TEST(FillNormal, IsStandardNormalAndAPrefixOfItself) {
  std::vector<float> all(200001), some(1001);
  const Address address{.seed = 4, .purpose = Purpose::posterior};
  fill_normal(address, all);
  fill_normal(address, some);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  expect_standard_normal({all.begin(), all.end()});
}

// The transform of each block on its own is the definition; widths of vectors may not change a bit.
TEST(FillNormal, HasTheBitsOfItsBlocksWhereverItBegins) {
  const Address address{
      .seed = 9, .purpose = Purpose::posterior, .round = 7, .client = 3, .step = 5};
  const std::uint64_t far = 4 * ((std::uint64_t(1) << 32) - 8);  // blocks pass 2^32
  for (const std::uint64_t first :
       {std::uint64_t(0), std::uint64_t(1024), std::uint64_t(12), far}) {
    std::vector<float> x(777);
    fill_normal(address, x, first);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const PhiloxCounter words = Stream(address).block((first + i) / 4);
      const std::size_t word = i % 4 & 2;
      const NormalPair pair = box_muller(words[word], words[word + 1]);
      ASSERT_EQ(x[i], i % 2 == 0 ? pair.first : pair.second) << first << " " << i;
    }
  }
  std::vector<float> x(4);
  EXPECT_THROW(fill_normal(address, x, 2), std::invalid_argument);
}

TEST(BoxMuller, ItsSeriesAgreeWithTheMathematicalFunctions) {
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const float u = unit_float(i * 42949u);
    EXPECT_NEAR(series_log(u), std::log(double(u)), 2e-7 * (1 - std::log(double(u))));
    const SinCos angle = turn(u);
    EXPECT_NEAR(angle.sin, std::sin(2 * M_PI * double(u)), 3e-7);
    EXPECT_NEAR(angle.cos, std::cos(2 * M_PI * double(u)), 3e-7);
  }
  EXPECT_NEAR(series_log(unit_float(0)), std::log(0x1p-25), 1e-5);
  EXPECT_NEAR(series_log(unit_float(~0u)), std::log1p(-0x1p-25), 1e-7);
}

TEST(FillUniform, StaysStrictlyInsideTheUnitInterval) {
  std::vector<float> u(100003);
  fill_uniform({.seed = 4}, u);
  EXPECT_GT(*std::min_element(u.begin(), u.end()), 0.0f);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 1.0f);
}

TEST(FillTruncatedNormal, HasTheVarianceOfANormalCutAtTwo) {
  std::vector<float> x(200000);
  fill_truncated_normal({.seed = 5}, x);
  double squares = 0;
  for (const float v : x) {
    ASSERT_LE(std::fabs(v), 2.0f);
    squares += double(v) * v;
  }
  // 1 - 2·2·φ(2)/(2Φ(2)-1) = 0.7737
  EXPECT_NEAR(squares / double(x.size()), 0.7737, 0.01);
}

TEST(Permutation, HoldsEveryIndexOnceAndDependsOnTheStream) {
  Stream a({.seed = 1}), b({.seed = 2});
  auto p = permutation(a, 1000);
  EXPECT_NE(p, permutation(b, 1000));
  std::sort(p.begin(), p.end());
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(p[i], i);
  EXPECT_TRUE(permutation(a, 0).empty());
}

TEST(Permutation, MakesEveryOrderEquallyLikely) {
  std::map<std::vector<std::uint32_t>, int> seen;
  const int trials = 30000;
  Stream stream({.seed = 8});
  for (int t = 0; t < trials; ++t) ++seen[permutation(stream, 3)];
  ASSERT_EQ(seen.size(), 6u);  // those in which somebody stays in place, too
  for (const auto& [order, count] : seen) {
    EXPECT_NEAR(count, trials / 6, 5 * std::sqrt(trials * 5.0 / 36));
  }
}

TEST(SampleWithoutReplacement, MakesEverySubsetEquallyLikely) {
  std::map<std::vector<std::size_t>, int> seen;
  const int trials = 60000;
  for (int t = 0; t < trials; ++t) {
    Stream stream({.seed = 7, .round = std::uint32_t(t)});
    ++seen[sample_without_replacement(stream, 5, 3)];
  }
  ASSERT_EQ(seen.size(), 10u);  // 5 choose 3
  for (const auto& [subset, count] : seen) {
    EXPECT_NEAR(count, trials / 10, 5 * std::sqrt(trials * 0.1 * 0.9));
  }
}

TEST(SampleWithoutReplacement, HandlesAllNoneAndTooMany) {
  Stream stream({.seed = 1});
  EXPECT_EQ(sample_without_replacement(stream, 3, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(sample_without_replacement(stream, 3, 0).empty());
  EXPECT_THROW(sample_without_replacement(stream, 3, 4), std::invalid_argument);
}

TEST(ClientKey, DiffersForDifferentIdsAndIsStable) {
  std::set<std::uint64_t> keys;
  for (int i = 0; i < 10000; ++i) keys.insert(client_key("client-" + std::to_string(i)));
  EXPECT_EQ(keys.size(), 10000u);
  // Written down so that a change of the hash, which would change every run, is noticed.
  EXPECT_EQ(client_key("client-0"), 6708501001360979766u);
}

}  // namespace
}  // namespace fedep
