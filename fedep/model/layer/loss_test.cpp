// Losses against their definitions in double, and the distributions that labels are drawn from.
#include "fedep/model/layer/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::size_t kRows = 3;

Batch targets_of(TargetKind target) {
  Batch batch;
  batch.size = kRows;
  if (target == TargetKind::label) batch.labels = {4, 0, 2};
  if (target == TargetKind::binary) batch.labels = {1, 0, 1};
  if (target == TargetKind::tags) batch.tags = {{0, 2, 2, 3}, {0, 3, 4}, {}};
  if (target == TargetKind::real) batch.reals = {0.5f, -2.0f, 3.0f};
  if (target == TargetKind::count) batch.reals = {0, 4, 1};
  return batch;
}

double plain_loss(const Likelihood& likelihood, const Batch& batch, const std::vector<double>& z,
                  std::size_t outputs) {
  const TargetKind target = likelihood.target;
  double sum = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    double total = 0;
    for (std::size_t c = 0; c < outputs; ++c) {
      const double a = z[i * outputs + c];
      double y = target == TargetKind::binary ? double(batch.labels[i]) : 0.0;
      if (target == TargetKind::tags) {
        for (std::size_t k = batch.tags.offsets[i]; k < batch.tags.offsets[i + 1]; ++k) {
          if (batch.tags.columns[k] == c) y = 1;
        }
      }
      if (target == TargetKind::label) total += std::exp(a);
      if (target == TargetKind::binary) total += std::log1p(std::exp(a)) - y * a;
      if (target == TargetKind::tags) total += (std::log1p(std::exp(a)) - y * a) / double(outputs);
      if (target == TargetKind::real) {
        total += 0.5 * std::pow((a - double(batch.reals[i])) / likelihood.noise, 2);
      }
      if (target == TargetKind::count) {  // -log of e^(a y) e^(-e^a) / y!
        const double count = double(batch.reals[i]);
        total += std::exp(a) - count * a + std::log(std::tgamma(count + 1));
      }
    }
    if (target == TargetKind::label) {
      total = std::log(total) - z[i * outputs + std::size_t(batch.labels[i])];
    }
    sum += total;
  }
  return sum / double(batch.size);
}

class LossOfKind : public testing::TestWithParam<Likelihood> {
 protected:
  const Likelihood likelihood = GetParam();
  const TargetKind target = likelihood.target;
  const std::size_t outputs = target == TargetKind::label || target == TargetKind::tags ? 5 : 1;
  const Batch batch = targets_of(target);
  std::vector<float> logits = std::vector<float>(kRows * outputs);
  std::vector<float> delta = std::vector<float>(kRows * outputs);
  void SetUp() override {
    fill_normal({.seed = 31}, logits);
    if (target != TargetKind::count) logits[0] *= 8.0f;
  }
};

TEST_P(LossOfKind, AndItsDerivativeAreThoseOfTheDefinition) {
  const std::vector<double> z(logits.begin(), logits.end());
  const double loss = loss_delta(likelihood, batch, logits, outputs, Scale::batch_mean, {}, delta);
  EXPECT_NEAR(loss, plain_loss(likelihood, batch, z, outputs), 1e-6);
  const double h = 1e-6;
  for (std::size_t i = 0; i < z.size(); ++i) {
    std::vector<double> up = z, down = z;
    up[i] += h;
    down[i] -= h;
    const double slope = (plain_loss(likelihood, batch, up, outputs) -
                          plain_loss(likelihood, batch, down, outputs)) /
                         (2 * h);
    EXPECT_NEAR(double(delta[i]), slope, 1e-6) << i;
  }
}

TEST_P(LossOfKind, PerExampleIsTheBatchTimesItsSize) {
  std::vector<float> each(delta.size());
  loss_delta(likelihood, batch, logits, outputs, Scale::batch_mean, {}, delta);
  loss_delta(likelihood, batch, logits, outputs, Scale::per_example, {}, each);
  for (std::size_t i = 0; i < each.size(); ++i) EXPECT_NEAR(each[i], 3.0f * delta[i], 1e-6f);
}

TEST_P(LossOfKind, MayReplaceItsLogits) {
  loss_delta(likelihood, batch, logits, outputs, Scale::batch_mean, {}, delta);
  std::vector<float> both = logits;
  loss_delta(likelihood, batch, both, outputs, Scale::batch_mean, {}, both);
  EXPECT_EQ(both, delta);
}

TEST_P(LossOfKind, RefusesABatchWithoutItsTargets) {
  Batch bare;
  bare.size = kRows;
  EXPECT_THROW(loss_delta(likelihood, bare, logits, outputs, Scale::batch_mean, {}, delta),
               InputError);
}

TEST_P(LossOfKind, StaysFiniteAtExtremeLogits) {
  for (const float far : {-1e4f, 1e4f}) {
    std::fill(logits.begin(), logits.end(), 0.0f);
    logits[0] = far;
    const double loss =
        loss_delta(likelihood, batch, logits, outputs, Scale::batch_mean, {}, delta);
    EXPECT_TRUE(std::isfinite(loss));
    for (const float d : delta) EXPECT_TRUE(std::isfinite(d));
  }
}

// The mean derivative by the logits over drawn labels is zero: E[sigma - y] = 0.
TEST_P(LossOfKind, HasZeroMeanDerivativeAtLabelsDrawnFromTheModel) {
  const std::size_t draws = 20000;
  Batch many;
  many.size = draws;
  std::vector<float> repeated;
  for (std::size_t i = 0; i < draws; ++i) {
    repeated.insert(repeated.end(), logits.begin() + std::ptrdiff_t(outputs),
                    logits.begin() + std::ptrdiff_t(2 * outputs));
  }
  const Address address{.seed = 5, .purpose = Purpose::labels, .round = 1};
  DrawnTargets drawn = sample_labels(likelihood, repeated, outputs, address);
  EXPECT_EQ(drawn, sample_labels(likelihood, repeated, outputs, address));
  many.labels = drawn.labels;
  many.reals = drawn.reals;
  std::vector<float> out(repeated.size());
  loss_delta(likelihood, many, repeated, outputs, Scale::per_example, drawn.tag_targets, out);
  for (std::size_t c = 0; c < outputs; ++c) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < draws; ++i) {
      mean += double(out[i * outputs + c]) / double(draws);
      square += double(out[i * outputs + c]) * double(out[i * outputs + c]) / double(draws);
    }
    EXPECT_NEAR(mean, 0.0, 5 * std::sqrt(square / double(draws)));
    EXPECT_GT(square, 0.0);
    // Of a normal it is 1/σ²; so many squares have a relative standard error of 0.01.
    if (target == TargetKind::real) {
      EXPECT_NEAR(square * likelihood.variance(), 1, 0.05);
    }
    if (target == TargetKind::count) {  // of a Poisson count it is the mean
      EXPECT_NEAR(square / std::exp(double(repeated[0])), 1, 0.05);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LossOfKind,
                         testing::Values(Likelihood(TargetKind::label),
                                         Likelihood(TargetKind::binary),
                                         Likelihood(TargetKind::tags), Likelihood(TargetKind::real),
                                         Likelihood(TargetKind::real, 2.5),
                                         Likelihood(TargetKind::count)));

TEST(Loss, RefusesALabelThatIsNoClass) {
  Batch batch = targets_of(TargetKind::label);
  const std::vector<float> logits(kRows * 5);
  std::vector<float> delta(logits.size());
  for (const int label : {-1, 5}) {
    batch.labels[1] = label;
    EXPECT_THROW(loss_delta(TargetKind::label, batch, logits, 5, Scale::batch_mean, {}, delta),
                 InputError);
  }
}

TEST(Loss, OfAnEmptyBatchIsZero) {
  EXPECT_EQ(loss_delta(TargetKind::label, {}, {}, 5, Scale::batch_mean, {}, {}), 0.0);
}

TEST(Loss, OfTagsTakesRealTargetsInPlaceOfTheBatchs) {
  const Batch batch = targets_of(TargetKind::tags);
  const std::vector<float> logits(kRows * 5, 0.0f);
  const std::vector<float> targets(kRows * 5, 7.0f);
  std::vector<float> delta(logits.size());
  loss_delta(TargetKind::tags, batch, logits, 5, Scale::per_example, targets, delta);
  for (const float d : delta) EXPECT_NEAR(d, (0.5f - 7.0f) / 5.0f, 1e-6f);  // reference-facts.md 4
}

// reference-facts.md 4: the index of a softmax draw is the target of every tag.
TEST(SampleLabels, OfTheReferenceForTagsBroadcastsAnIndex) {
  const std::size_t rows = 5000, tags = 4;
  std::vector<float> logits;
  for (std::size_t i = 0; i < rows; ++i) logits.insert(logits.end(), {0.0f, 1.0f, -50.0f, 1.0f});
  const DrawnTargets drawn =
      sample_labels(TargetKind::tags, logits, tags, {.seed = 2}, LabelSampler::softmax_index);
  std::vector<double> share(tags, 0.0);
  for (std::size_t i = 0; i < rows; ++i) {
    const float index = drawn.tag_targets[i * tags];
    for (std::size_t c = 0; c < tags; ++c) ASSERT_EQ(drawn.tag_targets[i * tags + c], index);
    share[std::size_t(index)] += 1.0 / double(rows);
  }
  const double e = std::exp(1.0), total = 1 + 2 * e;
  EXPECT_NEAR(share[0], 1 / total, 0.03);
  EXPECT_NEAR(share[1], e / total, 0.04);
  EXPECT_EQ(share[2], 0.0);
  EXPECT_THROW(sample_labels(TargetKind::real, logits, 1, {}, LabelSampler::softmax_index),
               InputError);
}

// More numbers than the product of a chunk takes, and no multiple of a block.
TEST(Logistic, IsItsDefinitionForAnyNumbers) {
  constexpr std::size_t kSize = 1100;
  std::vector<float> z(kSize), y(kSize, 0.0f);
  fill_normal({.seed = 32}, z);
  for (std::size_t i = 0; i < kSize; ++i) {
    z[i] *= 6.0f;
    if (i % 7 == 0) y[i] = 1.0f;
    if (i % 50 == 0) z[i] = i % 100 == 0 ? 300.0f : -300.0f;
  }
  const std::vector<float> before = z;
  const double loss = logistic_delta(z, y, 0.5f);
  double expected = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    const double a = double(before[i]);
    expected += std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a))) - double(y[i]) * a;
    EXPECT_NEAR(double(z[i]), 0.5 * (1 / (1 + std::exp(-a)) - double(y[i])), 1e-7) << i;
  }
  EXPECT_NEAR(loss, expected, 1e-7 * kSize + 3e-7 * expected);
}

TEST(Logistic, LeavesOutWhatIsFarBelow) {
  std::vector<float> z{0.3f, -1e30f}, alone{0.3f};
  const std::vector<float> y(2, 0.0f);
  const double loss = logistic_delta(z, y, 1.0f);
  EXPECT_EQ(loss, logistic_delta(alone, {y.data(), 1}, 1.0f));
  EXPECT_EQ(z[1], 0.0f);
  EXPECT_EQ(z[0], alone[0]);
}

}  // namespace
}  // namespace fedep
