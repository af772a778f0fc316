#include "fedep/sim/score/predictive.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;
constexpr std::size_t kFeatures = 4;

// A server whose q has these means and precisions.
ServerState state_of(const V& mean, const V& lambda) {
  ServerState state;
  state.phase = 0;
  state.global = from_mean(mean, lambda);
  state.prior = flat_like(mean, Family::diagonal);
  return state;
}

ServerState some_state(std::size_t size) {
  V mean(size), lambda(size);
  fill_normal({.seed = 3}, mean.span());
  fill_uniform({.seed = 4}, lambda.span());
  for (float& x : lambda.span()) x = 0.5f + 4 * x;
  return state_of(mean, lambda);
}

Batch some_rows(std::size_t n) {
  Batch batch;
  batch.size = n;
  batch.dense.resize(n * kFeatures);
  fill_normal({.seed = 5}, batch.dense);
  return batch;
}

std::vector<Predictions> marginal(Model& model, const ServerState& state, const Batch& batch,
                                  const DrawSettings& draws) {
  std::vector<Predictions> out;
  Predictive(model, state)
      .marginal(
          draws, 1, [&](std::size_t) -> const Batch& { return batch; },
          [&](std::size_t, const Predictions& p) { out.push_back(p); });
  return out;
}

struct Normal {
  double mean = 0, variance = 0;
};

// A linear model's logit at row i is normal: its mean and variance, in double.
Normal logit_of(const ServerState& state, const Batch& batch, std::size_t i) {
  const V mean_weights = mean(state.global), variance_weights = variance(state.global);
  Normal out{double(mean_weights[kFeatures]), double(variance_weights[kFeatures])};
  for (std::size_t j = 0; j < kFeatures; ++j) {
    const double x = double(batch.dense[i * kFeatures + j]);
    out.mean += x * double(mean_weights[j]);
    out.variance += x * x * double(variance_weights[j]);
  }
  return out;
}

// E f(z) for a normal z, by Simpson's rule over ±10 standard deviations.
template <class F>
double expectation(const Normal& z, const F& f) {
  constexpr int kIntervals = 4000;
  const double sd = std::sqrt(z.variance), h = 20.0 / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double u = -10 + i * h;
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * std::exp(-u * u / 2) * f(z.mean + sd * u);
  }
  return sum * h / 3 / std::sqrt(2 * std::numbers::pi);
}

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

// The logistic function keeps order, so its quantiles are those of the normal logit.
TEST(Predictive, TheMiddleOfDrawsIsWhereTheNormalLogitHasIt) {
  const auto model =
      make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::binary});
  const ServerState state = some_state(model->size());
  const Batch batch = some_rows(25);
  const auto asked = [&](double level) {
    return marginal(*model, state, batch, {.samples = 20000, .level = level}).at(0);
  };
  const Predictions none = asked(0), wide = asked(0.95), narrow = asked(0.5);
  EXPECT_TRUE(none.low.empty() && none.high.empty());
  EXPECT_EQ(none.mean, wide.mean);
  for (std::size_t i = 0; i < batch.size; ++i) {
    const Normal z = logit_of(state, batch, i);
    const double sd = std::sqrt(z.variance);
    // A 2.5 % quantile of so many draws is off by 0.02 deviations, a 25 % one by 0.01.
    EXPECT_NEAR(std::log(wide.low[i] / (1 - wide.low[i])), z.mean - 1.959964 * sd, 0.09 * sd);
    EXPECT_NEAR(std::log(wide.high[i] / (1 - wide.high[i])), z.mean + 1.959964 * sd, 0.09 * sd);
    EXPECT_NEAR(std::log(narrow.high[i] / (1 - narrow.high[i])), z.mean + 0.67449 * sd, 0.04 * sd);
    EXPECT_LT(wide.low[i], narrow.low[i]);
    EXPECT_LT(narrow.low[i], narrow.high[i]);
    EXPECT_LT(narrow.high[i], wide.high[i]);
    EXPECT_LT(wide.low[i], wide.mean[i]);
    EXPECT_GT(wide.high[i], wide.mean[i]);
  }
}

TEST(Predictive, OneDrawHasNoMiddle) {
  const auto model = make_linear({.features = kFeatures, .outputs = 3});
  const ServerState state = some_state(model->size());
  const Batch batch = some_rows(2);
  EXPECT_TRUE(marginal(*model, state, batch, {.samples = 1, .level = 0.9}).at(0).low.empty());
  EXPECT_EQ(marginal(*model, state, batch, {.samples = 3, .level = 0.9}).at(0).low.size(), 6u);
}

// Each class' probabilities are those after the temperature, as their mean is.
TEST(Predictive, TheMiddleOfDrawsIsAfterTheTemperature) {
  const auto model =
      make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::binary});
  ServerState state = some_state(model->size());
  const Batch batch = some_rows(4);
  const DrawSettings draws{.samples = 50, .level = 0.8};
  const Predictions before = marginal(*model, state, batch, draws).at(0);
  state.temperatures.marginal = 2;
  std::vector<Predictions> out;
  Predictive(*model, state, {.tempered = true})
      .marginal(
          draws, 1, [&](std::size_t) -> const Batch& { return batch; },
          [&](std::size_t, const Predictions& p) { out.push_back(p); });
  for (std::size_t i = 0; i < batch.size; ++i) {
    const auto logit = [](double p) { return std::log(p / (1 - p)); };
    EXPECT_NEAR(logit(out[0].mean[i]), logit(before.mean[i]) / 2, 1e-9);
    EXPECT_LT(out[0].low[i], out[0].mean[i]);
    EXPECT_GT(out[0].high[i], out[0].mean[i]);
    // Between two draws the temperature bends a little.
    EXPECT_NEAR(logit(out[0].low[i]), logit(before.low[i]) / 2, 0.02);
    EXPECT_NEAR(logit(out[0].high[i]), logit(before.high[i]) / 2, 0.02);
  }
}

TEST(Predictive, OfALogisticModelIsTheIntegralOverItsNormalLogit) {
  const auto model =
      make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::binary});
  const ServerState state = some_state(model->size());
  const Batch batch = some_rows(25);
  const int samples = 40000;
  const Predictions p = marginal(*model, state, batch, {.samples = samples, .entropy = true}).at(0);
  for (std::size_t i = 0; i < batch.size; ++i) {
    const Normal z = logit_of(state, batch, i);
    const double exact = expectation(z, logistic);
    const double square = expectation(z, [](double x) { return logistic(x) * logistic(x); });
    // Four standard errors of the mean over draws: all of 25 hold with probability 0.998.
    const double tolerance = 4 * std::sqrt((square - exact * exact) / samples);
    EXPECT_NEAR(p.mean[i], exact, tolerance);
    EXPECT_GT(std::abs(exact - logistic(z.mean)), 0.0);
    const auto entropy = [](double x) {
      const double q = logistic(x);
      return -q * std::log(q) - (1 - q) * std::log1p(-q);
    };
    const double mean_entropy = expectation(z, entropy);
    EXPECT_NEAR(p.entropy[i], mean_entropy, 4 * 0.7 / std::sqrt(samples));
    // Mutual information is what is left: the concave entropy of a mean is above the mean's.
    EXPECT_GT(predictive_entropy(TargetKind::binary, {&p.mean[i], 1}), p.entropy[i]);
  }
}

TEST(Predictive, OfALinearModelHasTheSpreadOfItsWeightsAndTheEntropyOfItsNoise) {
  const double noise = 3;
  const auto model = make_linear(
      {.features = kFeatures, .outputs = 1, .target = TargetKind::real, .noise = noise});
  const ServerState state = some_state(model->size());
  const Batch batch = some_rows(10);
  const int samples = 40000;
  const Predictions p = marginal(*model, state, batch, {.samples = samples, .entropy = true}).at(0);
  for (std::size_t i = 0; i < batch.size; ++i) {
    const Normal z = logit_of(state, batch, i);
    EXPECT_NEAR(p.mean[i], z.mean, 4 * std::sqrt(z.variance / samples));
    // A normal's sample variance has standard error variance × sqrt(2 / samples).
    EXPECT_NEAR(p.spread[i], z.variance, 4 * z.variance * std::sqrt(2.0 / samples));
    EXPECT_NEAR(p.entropy[i],
                0.5 * std::log(2 * std::numbers::pi * std::numbers::e) + std::log(noise), 1e-9);
  }
}

// e^z of a normal logit is log-normal.
TEST(Predictive, OfCountsIsTheMeanOfALogNormalWithItsSpread) {
  const auto model =
      make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::count});
  const ServerState state = some_state(model->size());
  Batch batch = some_rows(10);
  batch.log_exposure.assign(10, 0.5f);
  const int samples = 10000;
  const Predictions p = marginal(*model, state, batch, {.samples = samples, .entropy = true}).at(0);
  for (std::size_t i = 0; i < batch.size; ++i) {
    Normal z = logit_of(state, batch, i);
    z.mean += 0.5;
    const double mean = std::exp(z.mean + z.variance / 2);
    const double variance = mean * mean * std::expm1(z.variance);
    EXPECT_NEAR(p.mean[i], mean, 5 * std::sqrt(variance / samples));
    EXPECT_GT(p.spread[i], 0);
    EXPECT_GT(p.entropy[i], 0);
  }
}

// Two and three draws, over and over: the mean of their spreads is the variance, without the factor
// of (S − 1)/S that dividing by S would leave.
TEST(Predictive, TheSpreadOfFewDrawsIsUnbiased) {
  const auto model = make_linear({.features = kFeatures, .outputs = 1, .target = TargetKind::real});
  const ServerState state = some_state(model->size());
  const Batch batch = some_rows(1);
  const double variance = logit_of(state, batch, 0).variance;
  constexpr int kRepeats = 20000;
  for (const int samples : {2, 3}) {
    double sum = 0;
    for (int i = 0; i < kRepeats; ++i) {
      sum += marginal(*model, state, batch, {.round = i, .samples = samples}).at(0).spread.at(0);
    }
    const double error = variance * std::sqrt(2.0 / (samples - 1) / kRepeats);
    EXPECT_NEAR(sum / kRepeats, variance, 4 * error) << samples;
  }
  EXPECT_TRUE(marginal(*model, state, batch, {.samples = 1}).at(0).spread.empty());
}

TEST(Predictive, WithoutVarianceIsThePoint) {
  const auto model = make_linear({.features = kFeatures, .outputs = 3});
  V mean(model->size());
  fill_normal({.seed = 3}, mean.span());
  const ServerState state = state_of(mean, constant_like(mean, 1e14f));
  const Batch batch = some_rows(10);
  const Predictions drawn = marginal(*model, state, batch, {.samples = 3}).at(0);
  const Predictions point = Predictive(*model, state).point(batch);
  for (std::size_t i = 0; i < point.mean.size(); ++i) {
    EXPECT_NEAR(drawn.mean[i], point.mean[i], 1e-6);
  }
  for (std::size_t i = 0; i < batch.size; ++i) {
    EXPECT_NEAR(point.entropy[i],
                predictive_entropy(TargetKind::label, std::span(point.mean).subspan(3 * i, 3)),
                1e-12);
  }
}

TEST(Predictive, EntropiesAreThoseOfTextbooks) {
  const std::vector<double> even{0.25, 0.25, 0.25, 0.25}, sure{1, 0}, coin{0.5, 0.5};
  EXPECT_NEAR(predictive_entropy(TargetKind::label, even), std::log(4), 1e-12);
  EXPECT_EQ(predictive_entropy(TargetKind::label, sure), 0);
  EXPECT_EQ(predictive_entropy(TargetKind::tags, sure), 0);
  EXPECT_NEAR(predictive_entropy(TargetKind::tags, coin), 2 * std::log(2), 1e-12);
  const std::vector<double> one{1};
  EXPECT_NEAR(predictive_entropy(TargetKind::count, one, 1), 1.3048422422, 1e-9);
  EXPECT_NEAR(predictive_entropy(TargetKind::real, {}, 4),
              0.5 * std::log(8 * std::numbers::pi * std::numbers::e), 1e-12);
}

TEST(Predictive, TheLastLayerIsTheOneThatMakesOutputs) {
  const DatasetInfo images{.name = "images",
                           .features = {24, 24, 3},
                           .outputs = 10,
                           .feature_names = {},
                           .output_names = {}};
  const auto cnn = make_model({.name = "cnn"}, images);
  EXPECT_EQ(last_layer(cnn->layout(), 10), (Range{cnn->size() - 128 * 10 - 10, cnn->size()}));
  const auto resnet = make_model({.name = "resnet_small"}, images);
  EXPECT_EQ(last_layer(resnet->layout(), 10),
            (Range{resnet->size() - 64 * 10 - 10, resnet->size()}));
  const auto linear = make_model({.name = "linear"}, images);
  EXPECT_EQ(last_layer(linear->layout(), 10), (Range{0, linear->size()}));
  // Without a bias it is the last tensor alone.
  EXPECT_EQ(last_layer({{"a", {10, 10}}, {"b", {10, 10}}}, 10), (Range{100, 200}));
  EXPECT_THROW(last_layer({{"a", {10, 10}}, {"b", {3}}}, 10), InputError);
}

TEST(Predictive, DrawsOfTheLastLayerLeaveTheOthersAtTheirMean) {
  const DatasetInfo images{.name = "images",
                           .features = {6, 6, 1},
                           .outputs = 3,
                           .feature_names = {},
                           .output_names = {}};
  const auto model = make_model({.name = "cnn"}, images);
  V mean(model->size());
  model->initialise(1, mean.span());
  // Precise in the last layer, vague before it: were the others drawn, predictions would spread.
  V lambda = constant_like(mean, 1.0f);
  const Range last = last_layer(model->layout(), 3);
  for (std::size_t i = last.begin; i < last.end; ++i) lambda[i] = 1e14f;
  const ServerState state = state_of(mean, lambda);
  Batch batch;
  batch.size = 2;
  batch.dense.resize(72);
  fill_uniform({.seed = 9}, batch.dense);
  const Predictions point = Predictive(*model, state).point(batch);
  const Predictions some = marginal(*model, state, batch, {.samples = 2, .last_layer = true}).at(0);
  const Predictions all = marginal(*model, state, batch, {.samples = 2}).at(0);
  double largest = 0;
  for (std::size_t i = 0; i < point.mean.size(); ++i) {
    EXPECT_NEAR(some.mean[i], point.mean[i], 1e-5);
    largest = std::max(largest, std::abs(all.mean[i] - point.mean[i]));
  }
  EXPECT_GT(largest, 0.01);
}

TEST(Predictive, AnImproperPosteriorIsRefused) {
  const auto model = make_linear({.features = kFeatures, .outputs = 3});
  V mean(model->size());
  ServerState state = state_of(mean, constant_like(mean, 1.0f));
  state.global.lambda_vector()[2] = -1;
  state.initial = mean;  // where the point stays in such coordinates
  EXPECT_THROW(marginal(*model, state, some_rows(1), {}), InputError);
}

// Draws that agree have no mutual information, however unsure each of them is; draws that contradict each other have
// all of the mean's entropy.
TEST(MutualInformation, IsWhatDrawsDisagreeIn) {
  const double one = std::log(2.0);
  const Predictions agree{.mean = {0.5, 0.5}, .spread = {}, .entropy = {one}};
  EXPECT_NEAR(mutual_information(TargetKind::label, agree, 0, 2), 0, 1e-15);
  const Predictions contradict{.mean = {0.5, 0.5}, .spread = {}, .entropy = {0}};
  EXPECT_NEAR(mutual_information(TargetKind::label, contradict, 0, 2), one, 1e-15);
}

TEST(MutualInformation, IsOfPredictionsBeforeATemperature) {
  const Predictions tempered{
      .mean = {0.9, 0.1}, .spread = {}, .entropy = {0.2}, .entropy_before = {0.5}};
  EXPECT_NEAR(mutual_information(TargetKind::label, tempered, 0, 2), 0.3, 1e-15);
}

// A normal's spread over draws widens its average; without spread draws agree.
TEST(MutualInformation, OfANumberIsWhatItsSpreadAddsToTheNoise) {
  const double noise = predictive_entropy(TargetKind::real, std::vector{1.0}, 4.0);
  const Predictions predictions{.mean = {1.0}, .spread = {}, .entropy = {noise}};
  EXPECT_NEAR(mutual_information(TargetKind::real, predictions, 0, 1, 4.0), 0, 1e-15);
  EXPECT_NEAR(mutual_information(TargetKind::real, predictions, 0, 1, 4.0 * 9.0), std::log(3.0),
              1e-15);
}

TEST(MutualInformation, BelowZeroIsRoundingAndNotANumberStaysSo) {
  const Predictions rounded{.mean = {0.5, 0.5}, .spread = {}, .entropy = {std::log(2.0) + 1e-9}};
  EXPECT_EQ(mutual_information(TargetKind::label, rounded, 0, 2), 0.0);
  const Predictions broken{.mean = {NAN, 0.5}, .spread = {}, .entropy = {NAN}};
  EXPECT_TRUE(std::isnan(mutual_information(TargetKind::label, broken, 0, 2)));
}

}  // namespace
}  // namespace fedep
