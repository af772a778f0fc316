#include "fedep/metric/classification.h"

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

struct Sample {
  std::size_t classes;
  std::vector<double> probabilities;
  std::vector<std::int32_t> labels;

  Sample slice(std::size_t begin, std::size_t end) const {
    const auto at = [](const auto& all, std::size_t i) {
      return all.begin() + static_cast<std::ptrdiff_t>(i);
    };
    return {classes,
            {at(probabilities, begin * classes), at(probabilities, end * classes)},
            {at(labels, begin), at(labels, end)}};
  }
};

Sample random_sample(std::uint64_t seed, std::size_t size, std::size_t classes) {
  std::mt19937_64 random(seed);
  Sample sample{classes, {}, {}};
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<double> row(classes);
    for (double& p : row) p = std::ldexp(static_cast<double>(random() >> 11), -53) + 1e-9;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double p : row) sample.probabilities.push_back(p / sum);
    sample.labels.push_back(static_cast<std::int32_t>(random() % classes));
  }
  return sample;
}

ClassificationMetrics metrics_of(const Sample& sample) {
  ClassificationMetrics metrics(sample.classes);
  metrics.add(sample.probabilities, sample.labels);
  return metrics;
}

void expect_same_bits(const ClassificationMetrics& a, const ClassificationMetrics& b) {
  EXPECT_EQ(a.count(), b.count());
  EXPECT_EQ(a.correct(), b.correct());
  EXPECT_EQ(a.accuracy(), b.accuracy());
  EXPECT_EQ(a.nll(), b.nll());
  EXPECT_EQ(a.brier(), b.brier());
}

TEST(ClassificationMetrics, GiveTheSameBitsInChunksMergedAndAtOnce) {
  const Sample sample = random_sample(1, 1000, 7);
  const ClassificationMetrics once = metrics_of(sample);

  ClassificationMetrics chunks(7);
  ClassificationMetrics merged(7);
  for (std::size_t begin = 0; begin < 1000; begin += 37) {
    const Sample part = sample.slice(begin, std::min<std::size_t>(begin + 37, 1000));
    chunks.add(part.probabilities, part.labels);
    ClassificationMetrics other = metrics_of(part);
    other.merge(merged);  // the later part first: the order does not matter
    merged = other;
  }
  expect_same_bits(chunks, once);
  expect_same_bits(merged, once);
}

TEST(ClassificationMetrics, OfACertainRightAnswerArePerfect) {
  const ClassificationMetrics metrics = metrics_of({3, {0, 1, 0, 1, 0, 0}, {1, 0}});
  EXPECT_EQ(metrics.accuracy(), 1);
  EXPECT_EQ(metrics.nll(), 0);
  EXPECT_EQ(metrics.brier(), 0);
}

TEST(ClassificationMetrics, OfACertainWrongAnswerAreTheWorstAndFinite) {
  const ClassificationMetrics metrics = metrics_of({3, {0, 1, 0}, {2}});
  EXPECT_EQ(metrics.accuracy(), 0);
  EXPECT_EQ(metrics.nll(), 52 * std::log(2.0));
  EXPECT_EQ(metrics.brier(), 2);
}

TEST(ClassificationMetrics, OfUniformProbabilitiesAreKnown) {
  const ClassificationMetrics metrics =
      metrics_of({4, {0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}, {0, 3}});
  EXPECT_EQ(metrics.accuracy(), 0.5);  // the first of equals is predicted
  EXPECT_EQ(metrics.nll(), std::log(4.0));
  EXPECT_EQ(metrics.brier(), 0.75);  // 1 − 1/C
}

TEST(ClassificationMetrics, AgreeWithAPlainLoop) {
  for (const std::size_t classes : {1, 2, 10, 62}) {
    const Sample sample = random_sample(classes, 400, classes);
    long double nll = 0;
    long double brier = 0;
    int correct = 0;
    for (std::size_t i = 0; i < 400; ++i) {
      const double* row = &sample.probabilities[i * classes];
      nll -= std::log(static_cast<long double>(row[sample.labels[i]]));
      correct += std::max_element(row, row + classes) - row == sample.labels[i];
      for (std::size_t c = 0; c < classes; ++c) {
        const bool is = static_cast<std::int32_t>(c) == sample.labels[i];
        brier += (is ? 1 - row[c] : row[c]) * (is ? 1 - row[c] : row[c]);
      }
    }
    const ClassificationMetrics metrics = metrics_of(sample);
    EXPECT_EQ(metrics.correct(), correct);
    EXPECT_NEAR(metrics.nll(), static_cast<double>(nll / 400), 1e-12);
    EXPECT_NEAR(metrics.brier(), static_cast<double>(brier / 400), 1e-12);
  }
}

// A sample that any language computes alike; expected values from scikit-learn 1.9.1:
//   P = (h(7i+c) + 0.01) by row, normalised; top = P.argmax(1)
//   y = top if h(90000+i) < 0.3 else (7i² + 3i + 1) mod 7,    i < 500, c < 7
//   accuracy_score(y, top), log_loss(y, P), brier_score_loss(y, P)
double h(std::int64_t i) {
  return static_cast<double>((i * i * 31 + i * 7919 + 17) % 10007) / 10007.0;
}

TEST(ClassificationMetrics, AgreeWithScikitLearn) {
  Sample sample{7, {}, {}};
  for (int i = 0; i < 500; ++i) {
    std::vector<double> row(7);
    for (int c = 0; c < 7; ++c) row[static_cast<std::size_t>(c)] = h(7 * i + c) + 0.01;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double p : row) sample.probabilities.push_back(p / sum);
    const auto top = std::max_element(row.begin(), row.end()) - row.begin();
    sample.labels.push_back(
        static_cast<std::int32_t>(h(90000 + i) < 0.3 ? top : (7 * i * i + 3 * i + 1) % 7));
  }
  const ClassificationMetrics metrics = metrics_of(sample);
  EXPECT_EQ(metrics.accuracy(), 0.39);
  EXPECT_NEAR(metrics.nll(), 1.970325637883514, 1e-12);
  EXPECT_NEAR(metrics.brier(), 0.8347710861658604, 1e-12);
}

TEST(ClassificationMetrics, DoNotExistWithoutExamples) {
  const ClassificationMetrics metrics(10);
  EXPECT_EQ(metrics.count(), 0);
  EXPECT_TRUE(std::isnan(metrics.accuracy()));
  EXPECT_TRUE(std::isnan(metrics.nll()));
  EXPECT_TRUE(std::isnan(metrics.brier()));
}

TEST(ClassificationMetrics, CountADivergedPredictionAsWrong) {
  const ClassificationMetrics metrics = metrics_of({2, {1, std::nan(""), 0, 1}, {0, 1}});
  EXPECT_EQ(metrics.accuracy(), 0.5);
  EXPECT_TRUE(std::isnan(metrics.nll()));
  EXPECT_TRUE(std::isnan(metrics.brier()));
}

TEST(ClassificationMetrics, RefuseWhatDoesNotFitAndStayAsTheyWere) {
  ClassificationMetrics metrics = metrics_of({2, {0.5, 0.5}, {0}});
  const std::vector<double> p{0.5, 0.5};
  EXPECT_THROW(metrics.add(p, std::vector<std::int32_t>{0, 1}), InputError);
  EXPECT_THROW(metrics.add(p, std::vector<std::int32_t>{2}), InputError);
  EXPECT_THROW(metrics.add(p, std::vector<std::int32_t>{-1}), InputError);
  EXPECT_THROW(metrics.add(std::vector<double>{3, -2}, std::vector<std::int32_t>{0}), InputError);
  EXPECT_THROW(metrics.merge(ClassificationMetrics(3)), InputError);
  EXPECT_THROW(ClassificationMetrics(0), InputError);
  expect_same_bits(metrics, metrics_of({2, {0.5, 0.5}, {0}}));
}

TEST(BinaryMetrics, AreThoseOfTwoClassesWithHalfTheBrierScore) {
  const Sample sample = random_sample(5, 300, 2);
  std::vector<double> ones;
  for (std::size_t i = 0; i < 300; ++i) ones.push_back(sample.probabilities[2 * i + 1]);
  BinaryMetrics binary;
  binary.add(ones, sample.labels);
  const ClassificationMetrics two = metrics_of(sample);
  EXPECT_EQ(binary.correct(), two.correct());
  EXPECT_NEAR(binary.nll(), two.nll(), 1e-12);
  EXPECT_NEAR(binary.brier(), two.brier() / 2, 1e-12);
}

TEST(BinaryMetrics, GiveTheSameBitsMergedAndAtOnce) {
  std::vector<std::int32_t> labels;
  std::vector<double> p;
  for (int i = 0; i < 200; ++i) {
    labels.push_back(i % 3 == 0);
    p.push_back(h(i));
  }
  BinaryMetrics once;
  once.add(p, labels);
  BinaryMetrics first;
  BinaryMetrics second;
  first.add(std::span(p).first(90), std::span(labels).first(90));
  second.add(std::span(p).subspan(90), std::span(labels).subspan(90));
  second.merge(first);
  EXPECT_EQ(second.count(), 200);
  EXPECT_EQ(second.accuracy(), once.accuracy());
  EXPECT_EQ(second.nll(), once.nll());
  EXPECT_EQ(second.brier(), once.brier());
}

// p = h(i), y = [h(50000+i) < h(i)], i < 500; scikit-learn 1.9.1: accuracy_score(y, p > 0.5),
// log_loss, brier_score_loss.
TEST(BinaryMetrics, AgreeWithScikitLearn) {
  std::vector<double> p;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 500; ++i) {
    p.push_back(h(i));
    labels.push_back(h(50000 + i) < h(i));
  }
  BinaryMetrics metrics;
  metrics.add(p, labels);
  EXPECT_EQ(metrics.accuracy(), 0.724);
  EXPECT_NEAR(metrics.nll(), 0.5139942868980507, 1e-12);
  EXPECT_NEAR(metrics.brier(), 0.17331255951352695, 1e-12);
}

TEST(BinaryMetrics, HandleTheEdges) {
  BinaryMetrics metrics;
  EXPECT_TRUE(std::isnan(metrics.accuracy()));
  EXPECT_TRUE(std::isnan(metrics.nll()));
  EXPECT_TRUE(std::isnan(metrics.brier()));
  metrics.add(std::vector<double>{0, 1}, std::vector<std::int32_t>{0, 1});
  EXPECT_EQ(metrics.accuracy(), 1);
  EXPECT_EQ(metrics.nll(), 0);
  EXPECT_EQ(metrics.brier(), 0);
  metrics.add(std::vector<double>{0, 1}, std::vector<std::int32_t>{1, 0});
  EXPECT_EQ(metrics.accuracy(), 0.5);
  EXPECT_EQ(metrics.nll(), 26 * std::log(2.0));
  EXPECT_EQ(metrics.brier(), 0.5);
  metrics.add(std::vector<double>{0.5}, std::vector<std::int32_t>{0});
  EXPECT_EQ(metrics.correct(), 3);  // 0.5 predicts 0
  metrics.add(std::vector<double>{0.5}, std::vector<std::int32_t>{1});
  EXPECT_EQ(metrics.correct(), 3);
  metrics.add(std::vector<double>{std::nan("")}, std::vector<std::int32_t>{0});
  EXPECT_EQ(metrics.correct(), 3);
  EXPECT_TRUE(std::isnan(metrics.nll()));
  EXPECT_THROW(metrics.add(std::vector<double>{0.5}, std::vector<std::int32_t>{2}), InputError);
}

}  // namespace
}  // namespace fedep
