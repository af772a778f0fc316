#include "fedep/metric/tags.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/metric/probability.h"

namespace fedep {
namespace {

struct Sample {
  std::size_t tags;
  std::vector<double> probabilities;
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> columns;

  std::size_t size() const { return offsets.size() - 1; }
  bool has(std::size_t i, std::size_t tag) const {
    return std::count(columns.data() + offsets[i], columns.data() + offsets[i + 1], tag) > 0;
  }
};

Sample random_sample(std::uint64_t seed, std::size_t size, std::size_t tags) {
  std::mt19937_64 random(seed);
  Sample sample{.tags = tags, .probabilities = {}, .columns = {}};
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t t = 0; t < tags; ++t) {
      const auto level = random() % 21;  // coarse, so that ties and 0.5, 0 and 1 occur
      sample.probabilities.push_back(static_cast<double>(level) / 20);
      if (random() % 40 < level) sample.columns.push_back(static_cast<std::uint32_t>(t));
    }
    sample.offsets.push_back(static_cast<std::uint32_t>(sample.columns.size()));
  }
  return sample;
}

TagMetrics metrics_of(const Sample& sample, double threshold = 0.5, std::size_t k = 5) {
  TagMetrics metrics(sample.tags, threshold, k);
  metrics.add(sample.probabilities, sample.offsets, sample.columns);
  return metrics;
}

void expect_same_bits(const TagMetrics& a, const TagMetrics& b) {
  EXPECT_EQ(a.count(), b.count());
  EXPECT_EQ(a.precision(), b.precision());
  EXPECT_EQ(a.recall(), b.recall());
  EXPECT_EQ(a.micro_f1(), b.micro_f1());
  EXPECT_EQ(a.macro_f1(), b.macro_f1());
  EXPECT_EQ(a.recall_at_k(), b.recall_at_k());
  EXPECT_EQ(a.nll(), b.nll());
}

TEST(TagMetrics, GiveTheSameBitsInChunksMergedAndAtOnce) {
  const Sample sample = random_sample(1, 200, 30);
  TagMetrics chunks(30);
  TagMetrics merged(30);
  for (std::size_t begin = 0; begin < 200; begin += 40) {
    std::vector<std::uint32_t> offsets;
    for (std::size_t i = begin; i <= begin + 40; ++i) {
      offsets.push_back(sample.offsets[i] - sample.offsets[begin]);
    }
    const auto probabilities = std::span(sample.probabilities).subspan(begin * 30, 40 * 30);
    const auto columns = std::span(sample.columns).subspan(sample.offsets[begin], offsets.back());
    chunks.add(probabilities, offsets, columns);
    TagMetrics part(30);
    part.add(probabilities, offsets, columns);
    part.merge(merged);
    merged = part;
  }
  expect_same_bits(chunks, metrics_of(sample));
  expect_same_bits(merged, metrics_of(sample));
}

TEST(TagMetrics, ObeyTheIdentitiesOfF1) {
  const TagMetrics metrics = metrics_of(random_sample(2, 100, 20));
  const double p = metrics.precision();
  const double r = metrics.recall();
  EXPECT_NEAR(metrics.micro_f1(), 2 * p * r / (p + r), 1e-14);  // the harmonic mean

  // One tag for each example and one predicted: precision, recall and micro-F1 are all the
  // accuracy.
  Sample one{.tags = 4, .probabilities = {}, .columns = {}};
  int correct = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::uint32_t truth = i * i % 4;
    const std::uint32_t guess = i % 3;
    correct += truth == guess;
    for (std::uint32_t t = 0; t < 4; ++t) one.probabilities.push_back(t == guess ? 0.9 : 0.1);
    one.columns.push_back(truth);
    one.offsets.push_back(i + 1);
  }
  EXPECT_EQ(metrics_of(one).precision(), correct / 50.0);
  EXPECT_EQ(metrics_of(one).recall(), correct / 50.0);
  EXPECT_EQ(metrics_of(one).micro_f1(), correct / 50.0);
  EXPECT_EQ(metrics_of(one, 0.5, 1).recall_at_k(), correct / 50.0);  // top-1 accuracy

  // With a single tag macro and micro are the same.
  const TagMetrics single = metrics_of(random_sample(3, 60, 1));
  EXPECT_EQ(single.macro_f1(), single.micro_f1());
}

TEST(TagMetrics, PredictEverythingAtThresholdZeroAndNothingAtOne) {
  const Sample sample = random_sample(4, 50, 10);
  Sample positive = sample;
  for (double& p : positive.probabilities) p = 0.1 + 0.8 * p;
  EXPECT_EQ(metrics_of(positive, 0).recall(), 1);
  EXPECT_EQ(metrics_of(positive, 0).precision(),
            static_cast<double>(sample.columns.size()) / (50 * 10));
  EXPECT_EQ(metrics_of(sample, 1).precision(), 0);
  EXPECT_EQ(metrics_of(sample, 1).recall(), 0);
  EXPECT_EQ(metrics_of(sample, 1).micro_f1(), 0);
  EXPECT_EQ(metrics_of(sample, 0.5, 10).recall_at_k(), 1);  // k is all of them
}

TEST(TagMetrics, AgreeWithAPlainLoop) {
  for (const std::size_t tags : {1, 3, 6, 500}) {
    const Sample sample = random_sample(tags, 80, tags);
    double tp = 0;
    double fp = 0;
    double fn = 0;
    double macro = 0;
    double nll = 0;
    for (std::size_t t = 0; t < tags; ++t) {
      double tag_tp = 0;
      double tag_wrong = 0;
      for (std::size_t i = 0; i < 80; ++i) {
        const double p = sample.probabilities[i * tags + t];
        const bool actual = sample.has(i, t);
        tag_tp += actual && p > 0.5;
        tag_wrong += actual != (p > 0.5);
        fp += !actual && p > 0.5;
        fn += actual && !(p > 0.5);
        nll += negative_log(actual ? p : 1 - p);
      }
      tp += tag_tp;
      macro += tag_tp > 0 ? 2 * tag_tp / (2 * tag_tp + tag_wrong) : 0;
    }
    double hits = 0;
    for (std::size_t i = 0; i < 80; ++i) {
      std::vector<std::size_t> order(tags);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return sample.probabilities[i * tags + a] > sample.probabilities[i * tags + b];
      });
      for (std::size_t j = 0; j < std::min<std::size_t>(5, tags); ++j)
        hits += sample.has(i, order[j]);
    }
    const TagMetrics metrics = metrics_of(sample);
    EXPECT_NEAR(metrics.precision(), tp / (tp + fp), 1e-12);
    EXPECT_NEAR(metrics.recall(), tp / (tp + fn), 1e-12);
    EXPECT_NEAR(metrics.micro_f1(), 2 * tp / (2 * tp + fp + fn), 1e-12);
    EXPECT_NEAR(metrics.macro_f1(), macro / static_cast<double>(tags), 1e-12);
    EXPECT_NEAR(metrics.recall_at_k(), hits / (tp + fn), 1e-12);
    EXPECT_NEAR(metrics.nll(), nll / static_cast<double>(80 * tags), 1e-12);
  }
}

TEST(TagMetrics, GiveTheNumbersComputedByHand) {
  // Tag 0: predicted for both, right once. Tag 1: missed once. Tag 2: neither seen nor predicted
  // (0.5 is not above).
  const TagMetrics metrics = metrics_of({.tags = 3,
                                         .probabilities = {0.9, 0.2, 0.5, 0.8, 0.1, 0.0},
                                         .offsets = {0, 2, 2},
                                         .columns = {0, 1}},
                                        0.5, 2);
  EXPECT_EQ(metrics.precision(), 0.5);
  EXPECT_EQ(metrics.recall(), 0.5);
  EXPECT_EQ(metrics.micro_f1(), 0.5);
  EXPECT_NEAR(metrics.macro_f1(), (2.0 / 3 + 0 + 0) / 3, 1e-15);
  EXPECT_EQ(metrics.recall_at_k(), 0.5);  // the top two of the first example are tags 0 and 2
  EXPECT_NEAR(metrics.nll(), -std::log(0.9 * 0.2 * 0.5 * 0.2 * 0.9 * 1.0) / 6, 1e-15);
}

// P = h(12i+t)², Y = [t < 10 and h(70000+12i+t) < 0.15 + P/2], then P *= 0.4 for t = 11; i < 300, t
// < 12. scikit-learn 1.9.1: precision_score, recall_score, f1_score(Y, P > 0.5, average='micro' and
// 'macro', zero_division=0), the mean over tags of log_loss. Two tags are never present, one of
// them never predicted.
TEST(TagMetrics, AgreeWithScikitLearn) {
  const auto h = [](std::int64_t i) {
    return static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0;
  };
  Sample sample{.tags = 12, .probabilities = {}, .columns = {}};
  for (int i = 0; i < 300; ++i) {
    for (int t = 0; t < 12; ++t) {
      const double p = h(12 * i + t) * h(12 * i + t);
      if (t < 10 && h(70000 + 12 * i + t) < 0.15 + 0.5 * p) {
        sample.columns.push_back(static_cast<std::uint32_t>(t));
      }
      sample.probabilities.push_back(t == 11 ? 0.4 * p : p);
    }
    sample.offsets.push_back(static_cast<std::uint32_t>(sample.columns.size()));
  }
  const TagMetrics metrics = metrics_of(sample);
  EXPECT_NEAR(metrics.precision(), 0.49173098125689085, 1e-12);
  EXPECT_NEAR(metrics.recall(), 0.46898002103049424, 1e-12);
  EXPECT_NEAR(metrics.micro_f1(), 0.48008611410118407, 1e-12);
  EXPECT_NEAR(metrics.macro_f1(), 0.4205949804250993, 1e-12);
  EXPECT_NEAR(metrics.nll(), 0.6288117709696649, 1e-12);
  EXPECT_NEAR(metrics.recall_at_k(), 0.650893796004206,
              1e-12);  // numpy: argsort(-P, kind='stable')[:, :5]
}

TEST(TagMetrics, StayFiniteForCertainAndWrongAnswers) {
  Sample sample{.tags = 500,
                .probabilities = std::vector<double>(500, 1.0),
                .offsets = {0, 0},
                .columns = {}};
  EXPECT_NEAR(metrics_of(sample).nll(), 52 * std::log(2.0), 1e-12);
  EXPECT_EQ(metrics_of(sample).precision(), 0);
  EXPECT_EQ(metrics_of(sample).recall(), 0);  // no tag to find
  EXPECT_EQ(metrics_of(sample).recall_at_k(), 0);
  sample.probabilities.assign(500, 0.0);
  EXPECT_EQ(metrics_of(sample).nll(), 0);
}

TEST(TagMetrics, DoNotExistWithoutExamples) {
  const TagMetrics metrics(5);
  EXPECT_TRUE(std::isnan(metrics.precision()));
  EXPECT_TRUE(std::isnan(metrics.recall()));
  EXPECT_TRUE(std::isnan(metrics.micro_f1()));
  EXPECT_TRUE(std::isnan(metrics.macro_f1()));
  EXPECT_TRUE(std::isnan(metrics.recall_at_k()));
  EXPECT_TRUE(std::isnan(metrics.nll()));
}

TEST(TagMetrics, NeverPredictADivergedTag) {
  const TagMetrics metrics = metrics_of(
      {.tags = 2, .probabilities = {std::nan(""), 0.9}, .offsets = {0, 2}, .columns = {0, 1}}, 0.5,
      2);
  EXPECT_EQ(metrics.precision(), 1);
  EXPECT_EQ(metrics.recall(), 0.5);
  EXPECT_EQ(metrics.recall_at_k(), 0.5);
  EXPECT_TRUE(std::isnan(metrics.nll()));
}

TEST(TagMetrics, RefuseWhatDoesNotFit) {
  TagMetrics metrics(2);
  const std::vector<double> p{0.5, 0.5};
  using Indices = std::vector<std::uint32_t>;
  EXPECT_THROW(metrics.add(p, Indices{}, Indices{}), InputError);
  EXPECT_THROW(metrics.add(p, Indices{0, 2}, Indices{1}), InputError);
  EXPECT_THROW(metrics.add(p, Indices{1, 1}, Indices{1}), InputError);
  EXPECT_THROW(metrics.add(p, Indices{0, 1, 1}, Indices{1}), InputError);
  EXPECT_THROW(metrics.add(p, Indices{0, 1}, Indices{2}), InputError);
  EXPECT_THROW(metrics.add(p, Indices{0, 2}, Indices{1, 1}), InputError);
  EXPECT_THROW(metrics.add(std::vector<double>{0.5, 4}, Indices{0, 0}, Indices{}), InputError);
  EXPECT_THROW(metrics.merge(TagMetrics(3)), InputError);
  EXPECT_THROW(metrics.merge(TagMetrics(2, 0.4)), InputError);
  EXPECT_THROW(TagMetrics(0), InputError);
  EXPECT_THROW(TagMetrics(2, 1.5), InputError);
  EXPECT_THROW(TagMetrics(2, 0.5, 0), InputError);
  EXPECT_EQ(metrics.count(), 0);
}

}  // namespace
}  // namespace fedep
