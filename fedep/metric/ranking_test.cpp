#include "fedep/metric/ranking.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

double auc(const std::vector<double>& scores, const std::vector<std::int32_t>& labels) {
  Ranking ranking;
  ranking.add(scores, labels);
  return ranking.auc();
}

struct Sample {
  std::vector<double> scores;
  std::vector<std::int32_t> labels;
};

// Scores among `levels` values, so that few levels mean many ties; positives tend to score higher.
Sample random_sample(std::uint64_t seed, int size, std::uint64_t levels) {
  std::mt19937_64 random(seed);
  Sample sample;
  for (int i = 0; i < size; ++i) {
    const auto level = random() % levels;
    sample.scores.push_back(static_cast<double>(level));
    sample.labels.push_back(random() % levels < level);
  }
  sample.labels[0] = 0;
  sample.labels[1] = 1;
  return sample;
}

TEST(Auc, IsTheFractionOfPairsInTheRightOrder) {
  for (const std::uint64_t levels : {2, 5, 50, 1000000}) {
    const auto [scores, labels] = random_sample(levels, 150, levels);
    double won = 0;
    double pairs = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      for (std::size_t j = 0; j < scores.size(); ++j) {
        if (labels[i] != 1 || labels[j] != 0) continue;
        ++pairs;
        won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
    }
    EXPECT_EQ(auc(scores, labels), won / pairs);
  }
}

TEST(Auc, DoesNotChangeUnderAMonotoneMapAndTurnsAroundUnderAFallingOne) {
  const auto [scores, labels] = random_sample(1, 300, 40);
  std::vector<double> mapped;
  std::vector<double> falling;
  for (const double score : scores) {
    mapped.push_back(std::exp(score / 7) - 3);
    falling.push_back(-score);
  }
  EXPECT_EQ(auc(mapped, labels), auc(scores, labels));
  EXPECT_NEAR(auc(falling, labels), 1 - auc(scores, labels), 1e-15);
}

TEST(Auc, OfConstantScoresIsOneHalfAndOfPerfectOnesOne) {
  EXPECT_EQ(auc({0.3, 0.3, 0.3}, {0, 1, 0}), 0.5);
  EXPECT_EQ(auc({0.1, 0.2, 0.8, 0.9}, {0, 0, 1, 1}), 1.0);
  EXPECT_EQ(auc({0.1, 0.2, 0.8, 0.9}, {1, 1, 0, 0}), 0.0);
  EXPECT_EQ(auc({0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1}), 0.75);  // 3 of 4 pairs
}

TEST(Auc, IsTheSameInChunksAndMerged) {
  const auto [scores, labels] = random_sample(2, 200, 30);
  Ranking chunks;
  Ranking merged;
  for (std::size_t begin = 0; begin < 200; begin += 50) {
    const auto s = std::span(scores).subspan(begin, 50);
    const auto l = std::span(labels).subspan(begin, 50);
    chunks.add(s, l);
    Ranking part;
    part.add(s, l);
    part.merge(merged);
    merged = part;
  }
  EXPECT_EQ(chunks.auc(), auc(scores, labels));
  EXPECT_EQ(merged.auc(), auc(scores, labels));
}

// p = h(i), y = [h(50000+i) < h(i)], i < 500; scikit-learn 1.9.1: roc_auc_score(y, p),
// roc_auc_score(y, ⌊20p⌋).
TEST(Auc, AgreesWithScikitLearn) {
  const auto h = [](std::int64_t i) {
    return static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0;
  };
  std::vector<double> fine;
  std::vector<double> tied;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 500; ++i) {
    fine.push_back(h(i));
    tied.push_back(std::floor(20 * h(i)));
    labels.push_back(h(50000 + i) < h(i));
  }
  EXPECT_NEAR(auc(fine, labels), 0.8196931150898414, 1e-12);
  EXPECT_NEAR(auc(tied, labels), 0.8175170802732844, 1e-12);
}

TEST(Auc, DoesNotExistWithoutBothClassesOrWithANaN) {
  EXPECT_TRUE(std::isnan(auc({}, {})));
  EXPECT_TRUE(std::isnan(auc({0.1, 0.2}, {1, 1})));
  EXPECT_TRUE(std::isnan(auc({0.1, 0.2}, {0, 0})));
  EXPECT_TRUE(std::isnan(auc({0.1, std::nan(""), 0.3}, {0, 1, 1})));
}

TEST(Auc, RanksInfiniteScores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(auc({-kInfinity, 0, kInfinity}, {0, 0, 1}), 1.0);
}

TEST(Auc, RefusesLabelsOtherThanZeroAndOne) {
  EXPECT_THROW(auc({0.1}, {2}), InputError);
  EXPECT_THROW(auc({0.1}, {0, 1}), InputError);
}

// The variance of parts, written out pair by pair (DeLong+88).
TEST(Auc, ItsDeviationIsThatOfItsParts) {
  const std::vector<double> scores{0.1, 0.4, 0.35, 0.8, 0.4, 0.9, 0.2};
  const std::vector<std::int32_t> labels{0, 0, 1, 1, 1, 0, 0};
  const auto wins = [](double p, double n) { return p > n ? 1.0 : p == n ? 0.5 : 0.0; };
  double variance = 0;
  for (const std::int32_t own : {0, 1}) {
    std::vector<double> parts;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (labels[i] != own) continue;
      double part = 0, others = 0;
      for (std::size_t j = 0; j < scores.size(); ++j) {
        if (labels[j] == own) continue;
        part += own == 1 ? wins(scores[i], scores[j]) : wins(scores[j], scores[i]);
        ++others;
      }
      parts.push_back(part / others);
    }
    double mean = 0, squares = 0;
    for (const double part : parts) mean += part / double(parts.size());
    for (const double part : parts) squares += (part - mean) * (part - mean);
    variance += squares / double(parts.size() - 1) / double(parts.size());
  }
  Ranking ranking;
  ranking.add(scores, labels);
  EXPECT_NEAR(ranking.auc_deviation(), std::sqrt(variance), 1e-12);
}

TEST(Auc, WithFewerThanTwoOfAClassHasNoDeviation) {
  Ranking ranking;
  ranking.add(std::vector<double>{0.1, 0.2, 0.3}, std::vector<std::int32_t>{0, 0, 1});
  EXPECT_TRUE(std::isnan(ranking.auc_deviation()));
  ranking.add(std::vector<double>{NAN}, std::vector<std::int32_t>{1});
  EXPECT_TRUE(std::isnan(ranking.auc_deviation()));
}

}  // namespace
}  // namespace fedep
