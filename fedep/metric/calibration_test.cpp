#include "fedep/metric/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

const double kNan = std::nan("");

double uniform(std::mt19937_64& random) {
  return std::ldexp(static_cast<double>(random() >> 11), -53);
}

// Forecasts that come true with exactly the probability they state, or with its `power`.
std::vector<Forecast> random_forecasts(std::uint64_t seed, int size, double power = 1) {
  std::mt19937_64 random(seed);
  std::vector<Forecast> forecasts;
  for (int i = 0; i < size; ++i) {
    const double confidence = uniform(random);
    forecasts.push_back({confidence, uniform(random) < std::pow(confidence, power)});
  }
  return forecasts;
}

template <typename Bins>
Bins bins_of(const std::vector<Forecast>& forecasts, std::size_t bins = kCalibrationBins) {
  Bins result(bins);
  result.add(forecasts);
  return result;
}

// Laws that both ways of binning obey.
template <typename Bins>
class BothBins : public ::testing::Test {};
using BinTypes = ::testing::Types<UniformBins, EqualMassBins>;
TYPED_TEST_SUITE(BothBins, BinTypes);

TYPED_TEST(BothBins, FindNoErrorInCalibratedForecastsAsTheirNumberGrows) {
  // An empty effect still shows the mean of |noise|, about Σ_b n_b/n · 0.8 √(p(1−p)/n_b) ≈ 1.25 /
  // √n.
  EXPECT_LT(bins_of<TypeParam>(random_forecasts(1, 10'000)).ece(), 0.025);
  EXPECT_LT(bins_of<TypeParam>(random_forecasts(1, 1'000'000)).ece(), 0.0025);
}

TYPED_TEST(BothBins, FindTheErrorOfOverconfidentForecasts) {
  // ∫ (p − p²) dp = 1/6; always of one sign, so bins lose nothing of it.
  EXPECT_NEAR(bins_of<TypeParam>(random_forecasts(2, 1'000'000, 2)).ece(), 1.0 / 6, 0.002);
}

TYPED_TEST(BothBins, GiveTheSameBitsInChunksMergedAndShuffled) {
  std::vector<Forecast> forecasts = random_forecasts(3, 1000, 2);
  for (std::size_t i = 0; i < 300; ++i) {
    forecasts[i].confidence = std::round(8 * forecasts[i].confidence) / 8;  // ties
  }
  const auto once = bins_of<TypeParam>(forecasts);
  std::mt19937_64 random(4);
  std::shuffle(forecasts.begin(), forecasts.end(), random);
  TypeParam merged;
  for (std::size_t begin = 0; begin < 1000; begin += 125) {
    TypeParam part;
    part.add(std::span(forecasts).subspan(begin, 100));
    part.add(std::span(forecasts).subspan(begin + 100, 25));
    part.merge(merged);
    merged = part;
  }
  EXPECT_EQ(merged.ece(), once.ece());
  const std::vector<ReliabilityBin> a = merged.bins();
  const std::vector<ReliabilityBin> b = once.bins();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].count, b[i].count);
    if (a[i].count == 0) continue;
    EXPECT_EQ(a[i].confidence, b[i].confidence);
    EXPECT_EQ(a[i].accuracy, b[i].accuracy);
  }
}

TYPED_TEST(BothBins, HoldEveryForecastOnceAndKeepTheMeans) {
  const std::vector<Forecast> forecasts = random_forecasts(5, 777);
  std::int64_t count = 0;
  double confidence = 0;
  double happened = 0;
  for (const ReliabilityBin& bin : bins_of<TypeParam>(forecasts).bins()) {
    if (bin.count == 0) continue;
    EXPECT_LE(bin.low, bin.confidence);
    EXPECT_LE(bin.confidence, bin.high);
    count += bin.count;
    confidence += static_cast<double>(bin.count) * bin.confidence;
    happened += static_cast<double>(bin.count) * bin.accuracy;
  }
  EXPECT_EQ(count, 777);
  for (const Forecast& forecast : forecasts) {
    confidence -= forecast.confidence;
    happened -= forecast.happened;
  }
  EXPECT_NEAR(confidence, 0, 1e-10);
  EXPECT_NEAR(happened, 0, 1e-10);
}

TYPED_TEST(BothBins, WithOneBinCompareTheOverallMeans) {
  EXPECT_NEAR(bins_of<TypeParam>({{0.9, true}, {0.7, false}, {0.2, false}}, 1).ece(), 0.6 - 1.0 / 3,
              1e-15);
}

TYPED_TEST(BothBins, HandleTheEdges) {
  EXPECT_TRUE(std::isnan(TypeParam().ece()));
  EXPECT_EQ(TypeParam().bins().size(), 15);
  EXPECT_EQ(bins_of<TypeParam>({{1, true}, {1, true}}).ece(), 0);
  EXPECT_EQ(bins_of<TypeParam>({{1, false}}).ece(), 1);
  EXPECT_EQ(bins_of<TypeParam>({{0, false}}).ece(), 0);
  EXPECT_TRUE(std::isnan(bins_of<TypeParam>({{0.5, true}, {kNan, false}}).ece()));
  EXPECT_THROW(TypeParam(0), InputError);
  EXPECT_THROW(bins_of<TypeParam>({{1.5, true}}), InputError);
  TypeParam bins(3);
  EXPECT_THROW(bins.merge(TypeParam(4)), InputError);
}

TEST(UniformBins, OwnTheirUpperEdge) {
  for (const std::size_t bins : {1, 2, 3, 7, 10, 15, 49, 100}) {
    for (std::size_t i = 1; i <= bins; ++i) {
      const double edge = static_cast<double>(i) / static_cast<double>(bins);
      const auto below = bins_of<UniformBins>({{edge, true}}, bins).bins();
      EXPECT_EQ(below[i - 1].count, 1) << edge << " of " << bins;
      if (i == bins) continue;
      const auto above = bins_of<UniformBins>({{std::nextafter(edge, 1.0), true}}, bins).bins();
      EXPECT_EQ(above[i].count, 1) << edge << " of " << bins;
    }
  }
  EXPECT_EQ(bins_of<UniformBins>({{0, true}}).bins()[0].count, 1);
  EXPECT_EQ(bins_of<UniformBins>({{1 + 1e-7, true}, {-1e-7, true}}).bins()[14].count, 1);
}

TEST(UniformBins, GiveTheErrorComputedByHand) {
  // Two bins: (0, 0.5] has 0.4, 0.5 and one hit of two; (0.5, 1] has 0.6, 0.9, 0.9 and two hits of
  // three.
  const auto bins =
      bins_of<UniformBins>({{0.4, false}, {0.5, true}, {0.6, true}, {0.9, true}, {0.9, false}}, 2);
  EXPECT_NEAR(bins.ece(), 0.4 * std::abs(0.5 - 0.45) + 0.6 * std::abs(2.0 / 3 - 0.8), 1e-15);
  EXPECT_EQ(bins.bins()[0].count, 2);
  EXPECT_EQ(bins.bins()[0].high, 0.5);
  EXPECT_EQ(bins.bins()[0].accuracy, 0.5);
  EXPECT_NEAR(bins.bins()[1].confidence, 0.8, 1e-15);
}

TEST(UniformBins, AgreeWithAPlainLoopOverTheBins) {
  const std::vector<Forecast> forecasts = random_forecasts(6, 2000, 3);
  for (const int bins : {1, 4, 15, 33}) {
    double ece = 0;
    for (int b = 0; b < bins; ++b) {
      double confidence = 0;
      double happened = 0;
      for (const Forecast& forecast : forecasts) {
        const double c = forecast.confidence;
        if (!(c > b / static_cast<double>(bins) && c <= (b + 1) / static_cast<double>(bins)))
          continue;
        confidence += c;
        happened += forecast.happened;
      }
      ece += std::abs(happened - confidence) / 2000;
    }
    EXPECT_NEAR(bins_of<UniformBins>(forecasts, static_cast<std::size_t>(bins)).ece(), ece, 1e-12);
  }
}

TEST(EqualMassBins, DifferByOneAtMostWithoutTies) {
  for (const int size : {15, 16, 29, 30, 1000, 7}) {
    std::int64_t total = 0;
    for (const ReliabilityBin& bin : bins_of<EqualMassBins>(random_forecasts(7, size)).bins()) {
      EXPECT_GE(bin.count, size / 15);
      EXPECT_LE(bin.count, size / 15 + 1);
      total += bin.count;
    }
    EXPECT_EQ(total, size);
  }
}

TEST(EqualMassBins, NeverSeparateEqualConfidences) {
  const auto bins =
      bins_of<EqualMassBins>({{0.2, false}, {0.5, true}, {0.5, false}, {0.5, true}, {0.9, true}}, 3)
          .bins();
  EXPECT_EQ(bins[0].count, 4);  // would be 2, but cuts through the three 0.5
  EXPECT_EQ(bins[1].count, 0);
  EXPECT_TRUE(std::isnan(bins[1].accuracy));
  EXPECT_TRUE(std::isnan(bins[1].low));
  EXPECT_EQ(bins[2].count, 1);
  EXPECT_EQ(bins[2].low, 0.9);

  const auto constant = bins_of<EqualMassBins>(std::vector<Forecast>(30, {0.7, true}));
  EXPECT_EQ(constant.bins()[0].count, 30);
  EXPECT_NEAR(constant.ece(), 0.3, 1e-15);
}

TEST(TopClassForecasts, TakeTheMostProbableClass) {
  EXPECT_EQ(top_class_forecasts(std::vector<double>{0.2, 0.7, 0.1, 0.4, 0.4, 0.2}, 3,
                                std::vector<std::int32_t>{1, 1}),
            (std::vector<Forecast>{{0.7, true}, {0.4, false}}));
  const auto diverged =
      top_class_forecasts(std::vector<double>{kNan, 0.7}, 2, std::vector<std::int32_t>{1});
  EXPECT_TRUE(std::isnan(diverged[0].confidence));
  EXPECT_FALSE(diverged[0].happened);
  EXPECT_THROW(top_class_forecasts(std::vector<double>{0.2, 0.8}, 2, std::vector<std::int32_t>{2}),
               InputError);
}

TEST(TopClassForecasts, OfBinaryProbabilitiesAreThoseOfTwoClasses) {
  std::vector<double> ones;
  std::vector<double> both;
  std::vector<std::int32_t> labels;
  for (int i = 0; i <= 32; ++i) {  // 1 − p is exact
    ones.push_back(i / 32.0);
    both.insert(both.end(), {1 - i / 32.0, i / 32.0});
    labels.push_back(i % 3 == 0);
  }
  EXPECT_EQ(top_class_forecasts(ones, labels), top_class_forecasts(both, 2, labels));
}

TEST(PositiveForecasts, AreTheProbabilitiesThemselves) {
  EXPECT_EQ(positive_forecasts(std::vector<double>{0.2, 0.7}, std::vector<std::int32_t>{1, 0}),
            (std::vector<Forecast>{{0.2, true}, {0.7, false}}));
}

double h(std::int64_t i) {
  return static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0;
}

// p = h(i), y = [h(50000+i) < h(i)], i < 500; calibration_curve(y, p, n_bins=15) of scikit-learn
// 1.9.1.
TEST(UniformBins, AgreeWithScikitLearnsCalibrationCurve) {
  std::vector<double> p;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 500; ++i) {
    p.push_back(h(i));
    labels.push_back(h(50000 + i) < h(i));
  }
  const std::vector<ReliabilityBin> bins =
      bins_of<UniformBins>(positive_forecasts(p, labels)).bins();
  EXPECT_EQ(bins[0].accuracy, 0.0);
  EXPECT_NEAR(bins[0].confidence, 0.032682836300304066, 1e-12);
  EXPECT_NEAR(bins[4].accuracy, 0.5172413793103449, 1e-12);
  EXPECT_NEAR(bins[4].confidence, 0.30284318218626277, 1e-12);
  EXPECT_NEAR(bins[11].accuracy, 0.9047619047619048, 1e-12);
  EXPECT_NEAR(bins[11].confidence, 0.7648360433410898, 1e-12);
  EXPECT_NEAR(bins[14].accuracy, 0.9583333333333334, 1e-12);
  EXPECT_NEAR(bins[14].confidence, 0.9697586689317479, 1e-12);
}

// The sample of classification_test.cpp. scikit-learn has no ECE: from numpy, bins by
// digitize(confidence, linspace(0, 1, 16)[1:-1], right=True) and by
// array_split(argsort(confidence), 15).
TEST(BothKindsOfBins, AgreeWithNumpyOnSevenClasses) {
  std::vector<double> probabilities;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 500; ++i) {
    std::vector<double> row(7);
    for (int c = 0; c < 7; ++c) row[static_cast<std::size_t>(c)] = h(7 * i + c) + 0.01;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double p : row) probabilities.push_back(p / sum);
    const auto top = std::max_element(row.begin(), row.end()) - row.begin();
    labels.push_back(
        static_cast<std::int32_t>(h(90000 + i) < 0.3 ? top : (7 * i * i + 3 * i + 1) % 7));
  }
  const std::vector<Forecast> forecasts = top_class_forecasts(probabilities, 7, labels);
  EXPECT_NEAR(bins_of<UniformBins>(forecasts).ece(), 0.14104964805789663, 1e-12);
  EXPECT_NEAR(bins_of<EqualMassBins>(forecasts).ece(), 0.14295578828671243, 1e-12);
}

}  // namespace
}  // namespace fedep
